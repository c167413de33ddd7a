// The part of a report on energy (joules) and carbon (grams of CO2).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/watch/energy/energy_ledger.h"

namespace tierd {

// Returns "energy" of a report. Without totals it is an object with "unknown".
nlohmann::json energy_json(const std::optional<EnergyTotals>& totals);
// Returns labels and lines of the report. A token is a decoded one.
std::vector<std::pair<std::string, std::string>> energy_lines(const nlohmann::json& energy);

}  // namespace tierd
