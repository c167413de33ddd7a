// What is not stored but made on the way into a tier, and what that costs: for --check and reports.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/run/run_plan.h"

namespace tierd {

// One object for each encoding that tiers recode to: "to", "sites" (groups of operators), "in" (tiers),
// "unstored_bytes" (that a store with this edition would have more), "read_bytes" and "moved_bytes" (of a
// neuron: what is read of the stored one, and what crosses the link), "error" (relative, of some neurons, or
// of some rows of the source where the store is not made yet) and "encoded_bytes_per_second" (of what is
// read, by one thread, measured just now; null where there is no store). Errors: those of the files.
Result<nlohmann::json> recoding_json(const RunPlan& plan);

// Labels and values of lines about them, none where nothing is recoded.
std::vector<std::pair<std::string, std::string>> recoding_lines(const nlohmann::json& recoded);

}  // namespace tierd
