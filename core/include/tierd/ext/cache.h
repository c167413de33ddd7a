/* tierd.cache/1: decides which neurons stay in a memory; one instance for each memory. The core owns the
 * residency, the cache ranks. All functions: [kernel thread], must not block. A memory holds neurons of
 * editions: sets and numbers name editions, each of which has slots of its own. */
#ifndef TIERD_EXT_CACHE_H
#define TIERD_EXT_CACHE_H

#include "tierd/host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIERD_CACHE_1 "tierd.cache/1"

enum { TIERD_PRIORITY_DEMAND = 0, TIERD_PRIORITY_PREFETCH = 1, TIERD_PRIORITY_MIGRATION = 2 };
/* keep: fetched to stay. bypass: used from staging, never cached. refuse: not fetched at all (not for
 * demands). */
enum { TIERD_VERDICT_KEEP = 0, TIERD_VERDICT_BYPASS = 1, TIERD_VERDICT_REFUSE = 2 };
enum { TIERD_DROPPED_EVICTED = 0, TIERD_DROPPED_SHRUNK = 1, TIERD_DROPPED_FAILED = 2 };

typedef struct tierd_cache_1 {
  uint32_t size;
  /* Splits `bytes` of the tier among the host's editions, in slots of editions[e]->bytes. max_slots[e]: in,
   * the most that edition e can have; out, its share, at most that. Called before all other functions. */
  int (*share)(void* self, uint64_t bytes, uint32_t* max_slots);
  /* verdict[i] for the i-th missing neuron of `missing`. If the edition has fewer free slots (`free_slots`)
   * than neurons to keep, names at least a victim per lacking slot: of the edition, evictable, each once. */
  int (*admit)(void* self, const tierd_set_view* missing, int priority, uint32_t free_slots, uint8_t* verdict,
               tierd_victims_out* victims);
  /* These neurons of `edition` are valid now. Optional, like all functions that follow. */
  int (*landed)(void* self, uint32_t edition, const uint32_t* idx, uint32_t n);
  /* These neurons left the memory, or could not be fetched. */
  int (*dropped)(void* self, uint32_t edition, const uint32_t* idx, uint32_t n, int why);
  /* A step used these neurons. */
  int (*touch)(void* self, const tierd_set_view* used);
  /* Requests, by host->wish, the neurons that should be resident before the first step, or after the memory
   * has grown: edition by edition, without a site. Called after `share`. */
  int (*fill)(void* self);
  /* Requests, by host->wish, the neurons that the passes after `site` should find in this memory; called at
   * every site. A neuron that is fetched so and not kept stays in a staging block until it has been used; in
   * a memory without a unit, until its pass is over, so that other memories can fetch it. */
  int (*ahead)(void* self, uint32_t site);
  int (*end_step)(void* self);
  /* Hands over the neurons that another cache kept until now: [n] sets of valid neurons, one an edition.
   * Called after `share`, in place of `landed` for each. NULL: `landed` is called. */
  int (*adopt)(void* self, const tierd_set_view* const* resident, uint32_t n);
  /* The tier holds `bytes` from now on. Returns a new split, as `share` does, and victims wherever an edition
   * holds more than its share. Called between two steps, when every neuron is evictable. NULL: the size
   * cannot change. */
  int (*resize)(void* self, uint64_t bytes, uint32_t* max_slots, tierd_victims_out* victims);
  /* Called after `touch`: names neurons of that edition which leave now, whether or not their room is needed;
   * evictable, each once. There is room in `victims` for all neurons of the edition. */
  int (*expire)(void* self, uint32_t edition, tierd_victims_out* victims);
  /* Called after a step whose rows were a token and guesses of the tokens after it: the first `kept` of the
   * `rows` were right, the others are discarded. */
  int (*rows_kept)(void* self, uint32_t rows, uint32_t kept);
  /* Called after `end_step`: sets *wanted to 1 if another split of the same bytes would serve better. The
   * host then calls `resize` with these bytes, with nothing under way or in use. Needs `resize`. */
  int (*resplit)(void* self, uint32_t* wanted);
  /* A session is about to pass its first tokens; called on the instance of each memory. */
  int (*begin_sequence)(void* self, uint64_t sequence);
  /* The session is over, or discards its tokens; its number may be used again. An instance that has replaced
   * another may receive the end of a sequence that began before the swap. */
  int (*end_sequence)(void* self, uint64_t sequence);
  /* Since 2.4. In the pass of `site`, no unit computes from the memories that this one fetches from.
   * Requests, by host->wish as in `fill`, neurons to fetch from them meanwhile, the most important first. The
   * host fetches them a few at a time, as far as one of those memories holds them and the pass is not over,
   * and calls `admit` for them with TIERD_PRIORITY_MIGRATION. Not called in passes of prompts. */
  int (*idle)(void* self, uint32_t site);
} tierd_cache_1;

#ifdef __cplusplus
}
#endif
#endif
