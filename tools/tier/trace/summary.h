// The summary of a trace, on one screen.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/result.h"
#include "core/watch/trace/reader.h"

namespace tierd {

// Errors: those of the trace.
Result<nlohmann::json> summary_json(TraceReader& trace);
std::string summary_text(const nlohmann::json& summary);

}  // namespace tierd
