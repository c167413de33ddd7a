/* tierd.balancer/1: who computes what. [kernel thread]; must not block. */
#ifndef TIERD_EXT_BALANCER_H
#define TIERD_EXT_BALANCER_H

#include "tierd/host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIERD_BALANCER_1 "tierd.balancer/1"

typedef struct tierd_balancer_1 {
  uint32_t size;
  /* unit[i] < n_units for each neuron of `set` (i over set->n, or over all neurons): the computing unit. Unit
   * 0 holds the activations; each other one gets a copy of the site's input. Asked only where
   * there are several. The first calls ask for each edition as a whole (set->edition), before any step: those
   * answers are the neurons' homes. */
  int (*assign)(void* self, const tierd_set_view* set, uint32_t n_units, uint8_t* unit);
} tierd_balancer_1;

#ifdef __cplusplus
}
#endif
#endif
