/* tierd.levels/1, of a quantizer: chooses the edition of each neuron. [kernel thread]; must not block. */
#ifndef TIERD_EXT_QUANTIZER_H
#define TIERD_EXT_QUANTIZER_H

#include "tierd/host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIERD_LEVELS_1 "tierd.levels/1"

/* The quantizer ranks neurons: the host asks predictors for scores. */
enum { TIERD_LEVELS_NEEDS_SCORES = 1 };

typedef struct tierd_levels_1 {
  uint32_t size;
  /* level[i] (i over set->n, or over all neurons): the edition of set->site in which the neuron is fetched
   * and computed, an index into the site's editions. Called for a pass and for foreseen sets
   * (TIERD_SET_FORESEEN), which must not change the result for a pass; not for a site with one edition. */
  int (*choose)(void* self, const tierd_set_view* set, uint8_t* level);
  /* TIERD_LEVELS_…, the same as long as the instance lives. Optional (NULL): 0. With NEEDS_SCORES set->score
   * is present wherever the predictor has scores; if it has none at all, the host refuses the run. */
  uint32_t (*caps)(void* self);
} tierd_levels_1;

#ifdef __cplusplus
}
#endif
#endif
