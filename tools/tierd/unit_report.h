// The part of a report on units that compute side by side: what each of them has really computed, how evenly
// they were loaded, and what was moved while some of them were idle.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/run/runtime.h"

namespace tierd {

// NULL where one unit computes.
nlohmann::json units_json(const Runtime& runtime);
// NULL where there was no window (IdleCounters).
nlohmann::json idle_json(const Runtime& runtime);

// Label and text of each line, of a report with these two as "units" and "idle_windows".
std::vector<std::pair<std::string, std::string>> unit_lines(const nlohmann::json& report);

}  // namespace tierd
