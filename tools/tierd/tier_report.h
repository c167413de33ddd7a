// The part of a report on the tiers: what each was given and holds, what its caches were worth, and what
// crossed the links between them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/run/runtime.h"
#include "tools/tierd/report.h"

namespace tierd {

// Those with memories, from the lowest upwards, then the store's.
nlohmann::json tiers_json(const Runtime& runtime);
// Bytes and messages of each link, in all and for a decode step; "decode_settled_bytes" is the mean over the
// steps after kWarmUpSteps, null where there are none.
nlohmann::json links_json(Runtime& runtime, const RunResult& result);

// Lines with their labels: of each tier that has a memory what it holds, where its budget has changed that,
// and what its caches were worth, where there is more than one; of links, where there is more than one.
std::vector<std::pair<std::string, std::string>> tier_lines(const nlohmann::json& report);
// What --check says of them.
std::vector<std::pair<std::string, std::string>> budget_lines(const nlohmann::json& check);

}  // namespace tierd
