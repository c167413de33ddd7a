// Reports the weights that a store encodes differently from the model's file, also before the store is made.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/run/run_plan.h"

namespace tierd {

// Returns an object for each pair of encodings: "sites" (groups of operators), "from" (encodings of the
// model's file; unknown for a store that exists), "to", "error" (relative, the largest of its layers; of a
// planned store that of some rows of one layer) and "sampled". Errors: those of the source.
Result<nlohmann::json> encodings_json(const RunPlan& plan);

// Returns the same objects for a store that exists.
nlohmann::json stored_anew_json(const Store& store);

// Returns "qkv, up from q4_k to q4_0, relative error 0.05", or an empty text for an empty list.
std::string encodings_text(const nlohmann::json& encodings);

}  // namespace tierd
