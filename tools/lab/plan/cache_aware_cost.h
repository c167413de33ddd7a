// The cost of a token under a cache-aware mask (predictor top-k, mask = cache-aware): tokens are drawn, and
// each operator's channels are chosen as the predictor would choose them.
#pragma once

#include <cstdint>

#include "tools/lab/plan/cost_model.h"

namespace tierd {

struct CacheAwareCost {
  double kept = 0;             // resident share of the channels that every token uses
  double kept_of_experts = 0;  // the same for channels of experts
  double flash_bytes = 0;      // per token
  double reads = 0;            // per token
  double disk = 0;             // seconds per token
  double compute = 0;          // the same
  double choosing = 0;         // the same, for the predictor and the kernel, before an operator's reads begin
  double lost = 0;             // share of the inputs' energy
  double lost_of_largest = 0;  // if exactly the largest inputs were used
  double steady_token = 0;     // seconds; see cache_aware_cost
};

struct CacheAwareRun {
  // The caches hold the first channels of each operator, an equal share: first of operators that every token
  // uses, then, with the rest, of experts (cache pinned). Negative: so much of the head is read for each
  // token.
  double cache_bytes = 0;
  double sparsity = 0;   // the mask loses no more energy than these smallest inputs have
  bool by_rate = false;  // the store has the most used channels first
  double ahead = 0;      // this share of an operator's reads begins during the operator before
};

// An operator takes as long as the disk for its reads, or longer: at most `ahead` of them are done before its
// channels are chosen, and the rest follows, beside the computing. Unknown rates are those of Beta(4.25,
// 4.25): two tokens of a text then share .55 of the larger half of their inputs (measured for models without
// ReLU: .5 to .6).
CacheAwareCost cache_aware_cost(const CostModel& model, const CacheAwareRun& run);

}  // namespace tierd
