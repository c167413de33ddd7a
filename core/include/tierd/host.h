/* The functions that the host offers to a strategy. Every function takes `context` first and may be called on
 * the kernel's thread alone, inside `create` or a function of the strategy's table; a codec calls them on the
 * thread that calls it. The host owns every pointer that they return. C99, self-contained. */
#ifndef TIERD_HOST_H
#define TIERD_HOST_H

#include "tierd/status.h"
#include "tierd/views.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIERD_LOG_DEBUG = 0, TIERD_LOG_INFO = 1, TIERD_LOG_WARNING = 2, TIERD_LOG_ERROR = 3 };

typedef struct tierd_host {
  uint32_t size; /* of this struct in the running host, which has no field beyond it */
  void* context;
  uint64_t seed; /* for strategies that use random numbers */
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
  uint32_t memory; /* for a cache, its own memory; for other kinds TIERD_NO_MEMORY */

  /* Reads a parameter that the plugin declared with that type: the configured value, else the default. The
   * text lives as long as the instance. TIERD_E_INVALID: not declared, or of another type. */
  int (*integer)(void* context, const char* name, int64_t* value);
  int (*number)(void* context, const char* name, double* value);
  int (*flag)(void* context, const char* name, uint8_t* value);
  int (*text)(void* context, const char* name, const char** value);

  /* Logs one line for people. The last error logged before a function fails becomes the reason. */
  void (*log)(void* context, int level, const char* line);
  /* Sets a gauge, shown in the report under the plugin's name. TIERD_E_NO_SPACE: more than 64 names. */
  int (*metric)(void* context, const char* name, double value);
  /* Returns memory that is valid until the next call of this function or the end of the instance, aligned to
   * 64 bytes. Its content is kept if it need not grow. NULL: memory is short. */
  void* (*scratch)(void* context, uint64_t bytes);

  /* Requests neurons to be read ahead, kept from the start, or moved while there is time. May be called only
   * inside look_ahead of a predictor, ahead, fill and idle of a cache, and rebalance of a balancer, any
   * number of times; the nearest uses first. TIERD_E_INVALID: called elsewhere; TIERD_E_NO_SPACE: more than
   * 4096 wishes. A malformed wish quarantines the plugin. */
  int (*wish)(void* context, const tierd_wish* wish);

  /* Returns the memories in which a neuron of an edition is valid: bit m for memory m. */
  uint64_t (*holders)(void* context, uint32_t edition, uint32_t neuron);
  /* Returns the unit that is its home, see ext/balancer.h; TIERD_NO_UNIT: there is no such neuron. */
  uint32_t (*home)(void* context, uint32_t edition, uint32_t neuron);
  /* For caches: returns 1 if the neuron may be a victim, that is, if it is valid in the cache's tier and no
   * message or pass uses or awaits it; else 0. */
  int (*evictable)(void* context, uint32_t edition, uint32_t neuron);
  /* For caches: returns 1 if the neuron's home computes from the cache's memory, or from one that lies over
   * it, so that it is worth keeping from the start; else 0. With one unit always 1. */
  int (*at_home)(void* context, uint32_t edition, uint32_t neuron);

  /* Returns a tensor of the file that the configuration names for this plugin (`tensors`); the host has
   * loaded it and counts it in the budget. out->size: in, the size of the plugin's struct; out, the bytes of
   * it that the host has written. TIERD_E_INVALID: no such tensor. */
  int (*tensor)(void* context, const char* name, tierd_tensor_view* out);
  /* y[r][i] = sum over j of tensor[i][j] x[r][j], for `rows` rows: x [rows x columns], y [rows x rows of the
   * tensor], on the tier's threads. TIERD_E_INVALID: no such tensor, or not of two dimensions. */
  int (*linear)(void* context, uint32_t tensor, const float* x, uint32_t rows, float* y);

  /* Since 2.2. Returns the edition that a memory holds in place of the given edition, which another memory
   * holds or a pass uses. TIERD_NO_EDITION: there is no such memory or edition. */
  uint32_t (*held)(void* context, uint32_t memory, uint32_t edition);

  /* Since 2.4. Returns the heat of a site's neurons, [n] from 0 to 15 (ext/heat.h), valid until the plugin's
   * function returns. NULL: there is no source of heat, or it has no data about the site yet. */
  const uint8_t* (*heat)(void* context, uint32_t site);

  /* Since 2.6. Writes here[n of the edition]: 1 if the neuron need not be read from the store, because a
   * memory holds it, in this edition or in the one held in its place, or because it is already being fetched;
   * else 0. TIERD_E_INVALID: there is no such edition. */
  int (*resident)(void* context, uint32_t edition, uint8_t* here);
} tierd_host;

#ifdef __cplusplus
}
#endif
#endif
