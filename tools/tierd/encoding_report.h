// What a store does not keep as the model's file has it: for reports, and before the store is made.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/run/run_plan.h"

namespace tierd {

// One object for each way in which weights are encoded anew: "sites" (groups of operators), "from" (encodings
// of the model's file, unknown of a store that stands), "to", "error" (relative, the largest of its layers;
// of a planned store that of some rows of one layer) and "sampled". Errors: those of the source.
Result<nlohmann::json> encodings_json(const RunPlan& plan);

// The same of a store that stands.
nlohmann::json stored_anew_json(const Store& store);

// "qkv, up from q4_k to q4_0, relative error 0.05". Of nothing: an empty text.
std::string encodings_text(const nlohmann::json& encodings);

}  // namespace tierd
