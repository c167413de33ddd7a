// The points of a sweep, as a table for a person.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tierd {

// A row a point and test; of one that failed, its error. `report` as in report.h.
std::string sweep_table(const nlohmann::json& report);

}  // namespace tierd
