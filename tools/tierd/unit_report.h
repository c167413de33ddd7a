// The part of a report on units that compute in parallel: the neurons that each has computed, how evenly they
// were loaded, and the transfers while some of them were idle.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/run/runtime.h"

namespace tierd {

// Returns NULL where one unit computes.
nlohmann::json units_json(const Runtime& runtime);
// Returns NULL where there was no window (IdleCounters).
nlohmann::json idle_json(const Runtime& runtime);

// Returns label and text of each line. `report` has the two objects as "units" and "idle_windows".
std::vector<std::pair<std::string, std::string>> unit_lines(const nlohmann::json& report);

}  // namespace tierd
