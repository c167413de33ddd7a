// Other policies for a recorded run, as they are written on the command line: "cache.name=lfu",
// "cache.name=static,cache.tensors=heat.safetensors,arena=25%".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/watch/trace/header.h"

namespace tierd {

struct Alternative {
  std::string name;  // as it was written; of the recorded policy, "as recorded"
  StrategyConfig predictor, quantizer, cache, balancer;
  uint64_t arena_bytes = 0;
  bool one_cache = false;  // `cache` takes the place of those that tiers had of their own
};

// What was recorded, then one for each of `words`. What a word does not name stays as recorded; a strategy
// that it renames gets none of the recorded one's parameters. `arena`: bytes, or a share of all neurons.
// Errors: invalid_argument.
Result<std::vector<Alternative>> parse_alternatives(const TraceHeader& header,
                                                    const std::vector<std::string>& words);

}  // namespace tierd
