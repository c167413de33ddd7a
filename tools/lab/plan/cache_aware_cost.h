// What a token costs under a cache-aware mask (predictor top-k, mask = cache-aware): tokens are drawn, and of
// each operator's channels those are chosen that the predictor would choose.
#pragma once

#include <cstdint>

#include "tools/lab/plan/cost_model.h"

namespace tierd {

struct CacheAwareCost {
  double kept = 0;             // the share of the channels that is resident, of those that every token passes
  double kept_of_experts = 0;  // likewise, of those of experts
  double flash_bytes = 0;      // a token
  double reads = 0;            // a token
  double disk = 0;             // seconds a token
  double compute = 0;          // likewise
  double choosing = 0;         // likewise, of the predictor and the kernel, before an operator's reads begin
  double lost = 0;             // of the inputs' energy, a share
  double lost_of_largest = 0;  // where exactly the largest are used
  double steady_token = 0;     // seconds; see cache_aware_cost
};

struct CacheAwareRun {
  // They keep the first channels of each operator, an equal share: first of those that every token passes,
  // with the rest of experts' (cache pinned). Less than nothing: so much of the head is read anew for each
  // token.
  double cache_bytes = 0;
  double sparsity = 0;   // the mask loses no more energy than these smallest inputs
  bool by_rate = false;  // the store has the most used channels first
  double ahead = 0;      // this share of an operator's reads was begun during the operator before
};

// An operator takes as long as the disk for its reads, or longer: no more than `ahead` of them are done
// before its channels are chosen, and the rest follows, beside the computing. Where an operator's rates are
// not known they are those of Beta(4.25, 4.25): two tokens of a text then share .55 of the larger half of
// their inputs (what was measured of models without ReLU is .5 to .6).
CacheAwareCost cache_aware_cost(const CostModel& model, const CacheAwareRun& run);

}  // namespace tierd
