// The part of a report on decisions: the strategies and their cost, and how well neurons and experts were
// predicted.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/run/runtime.h"

namespace tierd {

nlohmann::json strategies_json(Runtime& runtime);
std::string strategies_text(const nlohmann::json& strategies);

// Returns the metrics of a strategy: "hot share 0.1, asked to move 12"; empty where it has none.
std::string metrics_text(const nlohmann::json& strategy);
// Returns "state-table, 0.21 ms a step: accuracy 0.97, recall 0.02" for the "heat" among the strategies.
std::string heat_text(const nlohmann::json& heat);

// Returns an entry for each site whose neurons are predicted: the used share and, where it was measured, the
// quality of the prediction.
nlohmann::json prediction_json(const Runtime& runtime);
// Returns one line: means over the sites, and the worst site.
std::string prediction_text(const nlohmann::json& sites);

// Returns, for each layer of a mixture, the experts that a token uses, how many were resident, and how well
// they were predicted.
nlohmann::json experts_json(const Runtime& runtime);
// Returns "8 of 64 a token: 61 % were there, 12 % came ahead; foreseen with precision 80 %, recall 79 %".
std::string experts_text(const nlohmann::json& sites);

}  // namespace tierd
