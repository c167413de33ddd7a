// What a token costs under a cache-aware mask (predictor top-k, mask = cache-aware): tokens are drawn, and of
// each operator's channels those are chosen that the predictor would choose, were a read to cost it all of
// the break-even, of which the flash agent takes half.
#pragma once

#include <cstdint>

#include "tools/cost_model/cost_model.h"

namespace tierd {

struct CacheAwareCost {
  double kept = 0;             // the share of the channels that is resident
  double flash_bytes = 0;      // a token
  double reads = 0;            // a token
  double disk = 0;             // seconds a token
  double compute = 0;          // likewise
  double lost = 0;             // of the inputs' energy, a share
  double lost_of_largest = 0;  // where exactly the largest are used
  double steady_token = 0;     // seconds, what is read ahead being read beside the computing
};

// `cache_bytes` keep the first channels of each operator, an equal share. `by_rate`: the store has the most
// used ones first. Where an operator's rates are not known they are those of Beta(4.25, 4.25): two tokens of
// a text then share .55 of the larger half of their inputs (what was measured of models without ReLU is .5 to
// .6).
CacheAwareCost cache_aware_cost(const CostModel& model, double cache_bytes, double sparsity, bool by_rate);

}  // namespace tierd
