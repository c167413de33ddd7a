// Formats the report of a sweep (tools/measurement/report.h) as text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/measurement/arguments.h"

namespace tierd {

// md: a table of the points. csv: a line for each test of each point, and for each point that failed.
std::string sweep_text(const nlohmann::json& report, Format format);

}  // namespace tierd
