/* tierd.balancer/1: assigns neurons to units. [kernel thread]; must not block. Not called with one unit. */
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
  /* home[i] < host->n_units for each neuron i of an edition: the unit from whose memory the neuron is
   * expected to be computed. The neuron is kept in that memory from the start and read ahead there. Called
   * for each edition before any step. */
  int (*place)(void* self, uint32_t edition, uint8_t* home);
  /* unit[i] < host->n_units for each neuron of `set` (i over set->n, or over all neurons): the unit that
   * computes the neuron in this pass, wherever its home is. */
  int (*assign)(void* self, const tierd_set_view* set, uint8_t* unit);
  /* TIERD_BALANCER_…, the same for all instances. Optional (NULL): 0. */
  uint32_t (*caps)(void* self);
  /* Since 2.4. Like `idle` of a cache: requests moves of neurons between memories while some of them are
   * idle. Each wish names an edition, no site, and the memory of a unit; that unit becomes the home of the
   * neurons once they are in its memory. Optional (NULL). */
  int (*rebalance)(void* self, uint32_t site);
} tierd_balancer_1;

#ifdef __cplusplus
}
#endif
#endif
