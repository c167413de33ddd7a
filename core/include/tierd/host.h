/* What the host offers to a strategy. All functions: [kernel thread], inside a call of the plugin. */
#ifndef TIERD_HOST_H
#define TIERD_HOST_H

#include "tierd/status.h"
#include "tierd/views.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tierd_host {
  uint32_t size;
  void* context; /* first argument of each function */
  uint64_t seed; /* for strategies that draw lots */
  uint32_t n_sites;
  const tierd_site_view*
      sites; /* [n_sites] in the order of one step; lives as long as the plugin's instance */
  /* 1 when the neuron lies valid in the cache's tier and nobody uses or awaits it now, so that it may be a
   * victim. */
  int (*evictable)(void* context, uint32_t site, uint32_t neuron);
} tierd_host;

#ifdef __cplusplus
}
#endif
#endif
