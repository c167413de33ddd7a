// The part of a report on joules and grams of CO2.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/watch/energy/energy_ledger.h"

namespace tierd {

// "energy" of a report; none: an object with "unknown".
nlohmann::json energy_json(const std::optional<EnergyTotals>& totals);
// Its lines with their labels; a token is one that was decoded.
std::vector<std::pair<std::string, std::string>> energy_lines(const nlohmann::json& energy);

}  // namespace tierd
