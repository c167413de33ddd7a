// Formats the report (report.h) as text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/tier/bench/arguments.h"

namespace tierd {

// md: tables to read. csv: a line a test, a column a single value, named by its path ("run.model").
std::string to_text(const nlohmann::json& report, Format format);

}  // namespace tierd
