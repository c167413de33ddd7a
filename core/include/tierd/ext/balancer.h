/* tierd.balancer/1: who computes what. [kernel thread]; must not block. Asked only where there are several
 * units (host->n_units). */
#ifndef TIERD_EXT_BALANCER_H
#define TIERD_EXT_BALANCER_H

#include "tierd/host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIERD_BALANCER_1 "tierd.balancer/1"

/* As TIERD_LEVELS_NEEDS_SCORES. */
enum { TIERD_BALANCER_NEEDS_SCORES = 1 };

typedef struct tierd_balancer_1 {
  uint32_t size;
  /* home[i] < host->n_units for each neuron i of an edition: the unit from whose memory it is expected to be
   * computed. It is kept there from the start, and read ahead there. Asked for each edition before any step.
   */
  int (*place)(void* self, uint32_t edition, uint8_t* home);
  /* unit[i] < host->n_units for each neuron of `set` (i over set->n, or over all neurons): who computes it in
   * this pass, wherever its home is. */
  int (*assign)(void* self, const tierd_set_view* set, uint8_t* unit);
  /* TIERD_BALANCER_…, the same for all instances. Optional (NULL): 0. */
  uint32_t (*caps)(void* self);
  /* Since 2.4. As `idle` of a cache: between which memories neurons should move while nobody computes from
   * some of them. A wish names an edition, no site, and the memory of a unit, which becomes the home of its
   * neurons once they are there. Optional (NULL). */
  int (*rebalance)(void* self, uint32_t site);
} tierd_balancer_1;

#ifdef __cplusplus
}
#endif
#endif
