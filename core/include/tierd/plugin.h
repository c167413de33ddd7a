/* A strategy: predictor, quantizer, cache or balancer. The only headers that it includes are these. C11.
 *
 * A strategy is passive: no threads, files or sockets; for the same calls and seed it gives the same answers.
 * It answers with negative status codes, never with an exception. */
#ifndef TIERD_PLUGIN_H
#define TIERD_PLUGIN_H

#include "tierd/ext/balancer.h"
#include "tierd/ext/cache.h"
#include "tierd/ext/predictor.h"
#include "tierd/ext/quantizer.h"
#include "tierd/host.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tierd_plugin {
  uint32_t size;
  const char* kind;    /* "predictor", "quantizer", "cache", "balancer" */
  const char* name;    /* as in the configuration */
  const char* summary; /* one line for the manual */
  uint8_t lossy;       /* may change results */
  /* NULL when memory is short. `host` outlives the instance. */
  void* (*create)(const tierd_host* host);
  void (*destroy)(void* self);
  /* The table for an id such as TIERD_CACHE_1, or NULL. */
  const void* (*extension)(const char* id);
} tierd_plugin;

#ifdef __cplusplus
}
#endif
#endif
