// The part of a report on what was chosen: the strategies and their cost, and how well neurons and experts
// were foreseen.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/run/runtime.h"

namespace tierd {

nlohmann::json strategies_json(Runtime& runtime);
std::string strategies_text(const nlohmann::json& strategies);

// Returns the metrics of a strategy: "hot share 0.1, asked to move 12"; empty where it says nothing.
std::string metrics_text(const nlohmann::json& strategy);
// "state-table, 0.21 ms a step: accuracy 0.97, recall 0.02", of the "heat" among the strategies.
std::string heat_text(const nlohmann::json& heat);

// Each site whose neurons are predicted has an entry: what was used, and where that was measured, how well it
// was foreseen.
nlohmann::json prediction_json(const Runtime& runtime);
// One line of it: means over the sites, and the worst.
std::string prediction_text(const nlohmann::json& sites);

// For each layer of a mixture: how many experts a token uses, where they were, and how well they were
// foreseen.
nlohmann::json experts_json(const Runtime& runtime);
// "8 of 64 a token: 61 % were there, 12 % came ahead; foreseen with precision 80 %, recall 79 %".
std::string experts_text(const nlohmann::json& sites);

}  // namespace tierd
