// The part of a report on tiers: budgets and used bytes, cache hits, and the bytes that crossed the links.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/run/runtime.h"
#include "tools/tierd/report.h"

namespace tierd {

// Returns the tiers with memories, from the lowest upwards, then the store's.
nlohmann::json tiers_json(const Runtime& runtime);
// Returns bytes and messages of each link, in total and for a decode step. "decode_settled_bytes" is the mean
// over the steps after kWarmUpSteps, null where there are none.
nlohmann::json links_json(Runtime& runtime, const RunResult& result);

// Returns labels and lines. Each tier with a memory has lines on its used bytes, on budget changes, and, with
// more than one tier, on its cache. Links have lines where there are several.
std::vector<std::pair<std::string, std::string>> tier_lines(const nlohmann::json& report);
// Returns the labels and lines of --check on budgets.
std::vector<std::pair<std::string, std::string>> budget_lines(const nlohmann::json& check);

}  // namespace tierd
