/* tierd.levels/1, of a quantizer: in which edition a neuron is used. [kernel thread]; must not block. */
#ifndef TIERD_EXT_QUANTIZER_H
#define TIERD_EXT_QUANTIZER_H

#include "tierd/host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIERD_LEVELS_1 "tierd.levels/1"

/* It ranks neurons: predictors are asked for scores. */
enum { TIERD_LEVELS_NEEDS_SCORES = 1 };

typedef struct tierd_levels_1 {
  uint32_t size;
  /* level[i] (i over set->n, or over all neurons): in which of the editions of set->site the neuron is
   * fetched and computed, an index into the site's editions. Asked for a pass, and for what is looked ahead
   * to (TIERD_SET_FORESEEN), which must not change what a pass is answered; never where the site has one
   * edition alone. */
  int (*choose)(void* self, const tierd_set_view* set, uint8_t* level);
  /* TIERD_LEVELS_…, the same as long as the instance lives. Optional (NULL): 0. With NEEDS_SCORES set->score
   * is there wherever the predictor has scores; where it has none at all, the run is refused. */
  uint32_t (*caps)(void* self);
} tierd_levels_1;

#ifdef __cplusplus
}
#endif
#endif
