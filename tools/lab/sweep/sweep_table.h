// A table of the points of a sweep.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tierd {

// A row for each point and test; for a failed point, its error. `report` as in tools/measurement/report.h.
std::string sweep_table(const nlohmann::json& report);

}  // namespace tierd
