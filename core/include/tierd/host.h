/* What the host offers to a strategy. Every function takes `context` first and may be called on the kernel's
 * thread alone, inside `create` or a function of the strategy's table; a codec calls them on the thread that
 * calls it. Pointers that it returns are the
 * host's. C99, self-contained. */
#ifndef TIERD_HOST_H
#define TIERD_HOST_H

#include "tierd/status.h"
#include "tierd/views.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIERD_LOG_DEBUG = 0, TIERD_LOG_INFO = 1, TIERD_LOG_WARNING = 2, TIERD_LOG_ERROR = 3 };

typedef struct tierd_host {
  uint32_t size; /* of this struct in the running host: a field beyond it is not there */
  void* context;
  uint64_t seed; /* for strategies that draw lots */
  uint32_t n_sites;
  /* [n_sites] in the order of one step; they live as long as the instance. */
  const tierd_site_view* const* sites;
  uint32_t n_editions;
  /* [n_editions] they live as long as the instance. */
  const tierd_edition_view* const* editions;
  uint32_t n_memories;
  /* [n_memories] from the lowest upwards; they live as long as the instance. */
  const tierd_memory_view* const* memories;
  uint32_t n_units;
  /* [n_units] they live as long as the instance. */
  const tierd_unit_view* const* units;
  uint32_t memory; /* of a cache, the number of its own; of others TIERD_NO_MEMORY */

  /* A parameter that the plugin declared, of that type; as configured, else its default. The text lives as
   * long as the instance. TIERD_E_INVALID: not declared, or of another type. */
  int (*integer)(void* context, const char* name, int64_t* value);
  int (*number)(void* context, const char* name, double* value);
  int (*flag)(void* context, const char* name, uint8_t* value);
  int (*text)(void* context, const char* name, const char** value);

  /* One line for people. The last error before a failing answer becomes its reason. */
  void (*log)(void* context, int level, const char* line);
  /* Sets a gauge, shown in the report under the plugin's name. TIERD_E_NO_SPACE: more than 64 names. */
  int (*metric)(void* context, const char* name, double value);
  /* Memory until the next call of this function or the end of the instance, aligned to 64 bytes, its content
   * kept when it need not grow. NULL: memory is short. */
  void* (*scratch)(void* context, uint64_t bytes);

  /* What should be read ahead, or kept from the start, or moved while there is time: inside look_ahead of a
   * predictor, ahead, fill and idle of a cache, rebalance of a balancer alone, as often as there is
   * something. What is foreseen nearest comes first. TIERD_E_INVALID: nobody asks now; TIERD_E_NO_SPACE: more
   * than 4096 wishes. A wish that makes no sense quarantines the plugin. */
  int (*wish)(void* context, const tierd_wish* wish);

  /* Where a neuron of an edition is valid: bit m for memory m. */
  uint64_t (*holders)(void* context, uint32_t edition, uint32_t neuron);
  /* The unit that is its home, see ext/balancer.h; TIERD_NO_UNIT: there is no such neuron. */
  uint32_t (*home)(void* context, uint32_t edition, uint32_t neuron);
  /* For caches: 1 when the neuron lies valid in the cache's tier and nobody uses or awaits it now, so that it
   * may be a victim; else 0. */
  int (*evictable)(void* context, uint32_t edition, uint32_t neuron);
  /* For caches: 1 when the neuron's home computes from the cache's memory, or from one that lies over it, so
   * that it is worth keeping from the start; else 0. With one unit always 1. */
  int (*at_home)(void* context, uint32_t edition, uint32_t neuron);

  /* A tensor of the file that the configuration names for this plugin (`tensors = "FILE.safetensors"`); the
   * host has loaded it and counts it in the budget. out->size: in, what the plugin has room for; out, what
   * the host has written of it. TIERD_E_INVALID: no such tensor. */
  int (*tensor)(void* context, const char* name, tierd_tensor_view* out);
  /* y[r][i] = sum over j of tensor[i][j] x[r][j], for `rows` rows: x [rows x columns], y [rows x rows of the
   * tensor], on the tier's threads. TIERD_E_INVALID: no such tensor, or not of two dimensions. */
  int (*linear)(void* context, uint32_t tensor, const float* x, uint32_t rows, float* y);

  /* Since 2.2. The edition in which a memory holds what another memory holds, or a pass wants, in this one.
   * TIERD_NO_EDITION: there is no such memory or edition. */
  uint32_t (*held)(void* context, uint32_t memory, uint32_t edition);

  /* Since 2.4. How hot the neurons of a site are, [n] from 0 to 15 (ext/heat.h), until the plugin's function
   * returns; NULL: nobody can say, or nothing of the site was told yet. */
  const uint8_t* (*heat)(void* context, uint32_t site);

  /* Since 2.6. Writes here[n of the edition]: 1 where a neuron need not be read from the store, because it is
   * in a memory, in this edition or in what that one holds in its place, or on its way there; else 0.
   * TIERD_E_INVALID: there is no such edition. */
  int (*resident)(void* context, uint32_t edition, uint8_t* here);
} tierd_host;

#ifdef __cplusplus
}
#endif
#endif
