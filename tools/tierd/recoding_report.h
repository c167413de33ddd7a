// The part of --check and of reports on editions that are recoded on the way into a tier, and on their cost.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/run/run_plan.h"

namespace tierd {

// Returns an object for each encoding that tiers recode to: "to", "sites" (groups of operators), "in"
// (tiers), "unstored_bytes" (bytes that a store with this edition would add), "read_bytes" and "moved_bytes"
// (of a neuron: read of the stored edition, and moved over the link), "error" (relative, of some neurons, or
// of some rows of the source where the store is not made yet) and "encoded_bytes_per_second" (of the bytes
// read, by one thread, measured now; null without a store). Errors: those of the files.
Result<nlohmann::json> recoding_json(const RunPlan& plan);

// Returns labels and lines of the report, none where no edition is recoded.
std::vector<std::pair<std::string, std::string>> recoding_lines(const nlohmann::json& recoded);

}  // namespace tierd
