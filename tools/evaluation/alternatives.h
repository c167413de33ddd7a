// Other policies for a recorded run, in the syntax of the command line: "cache.name=lfu",
// "cache.name=static,cache.tensors=heat.safetensors,arena=25%".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/watch/trace/header.h"

namespace tierd {

struct Alternative {
  std::string name;  // the word; for the recorded policy, "as recorded"
  StrategyConfig predictor, quantizer, cache, balancer;
  uint64_t arena_bytes = 0;
  bool one_cache = false;  // `cache` replaces the tiers' own caches
};

// Returns the recorded policy, then one for each of `words`. Settings that a word does not name stay as
// recorded; a strategy that it renames gets none of the recorded one's parameters. `arena`: bytes, or a share
// of all neurons. Error: invalid_argument.
Result<std::vector<Alternative>> parse_alternatives(const TraceHeader& header,
                                                    const std::vector<std::string>& words);

}  // namespace tierd
