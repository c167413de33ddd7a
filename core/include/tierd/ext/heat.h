/* tierd.heat/1: how often neurons have fired lately; an ability of a predictor, beside or instead of
 * tierd.predictor/1. Other strategies read tierd_host.heat. [kernel thread]; must not block. */
#ifndef TIERD_EXT_HEAT_H
#define TIERD_EXT_HEAT_H

#include "tierd/host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIERD_HEAT_1 "tierd.heat/1"

/* Heat has four bits, from 0, cold, to this. */
#define TIERD_HOTTEST 15

typedef struct tierd_heat_1 {
  uint32_t size;
  /* Reports which neurons of a site fired in a pass that has just been computed. Called for each site whose
   * computation reports firing, in the order of the passes, prompts included. */
  int (*fired)(void* self, const tierd_fired_view* fired);
  /* Writes heat[i], at most TIERD_HOTTEST, for each neuron i of `site`. Called after `fired`, for its site
   * and for the next site that reports firing. */
  int (*heat)(void* self, uint32_t site, uint8_t* heat);
} tierd_heat_1;

#ifdef __cplusplus
}
#endif
#endif
