/* tierd.cache/1: what stays in a memory; one instance for each. The core keeps the residency,
 * the cache ranks. All functions: [kernel thread], must not block. A memory holds neurons of editions: sets
 * and numbers name editions, each with slots of its own. */
#ifndef TIERD_EXT_CACHE_H
#define TIERD_EXT_CACHE_H

#include "tierd/host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIERD_CACHE_1 "tierd.cache/1"

enum { TIERD_PRIORITY_DEMAND = 0, TIERD_PRIORITY_PREFETCH = 1, TIERD_PRIORITY_MIGRATION = 2 };
/* keep: comes to stay. bypass: used from staging, never cached. refuse: not fetched at all (no
 * demands). */
enum { TIERD_VERDICT_KEEP = 0, TIERD_VERDICT_BYPASS = 1, TIERD_VERDICT_REFUSE = 2 };
enum { TIERD_DROPPED_EVICTED = 0, TIERD_DROPPED_SHRUNK = 1, TIERD_DROPPED_FAILED = 2 };

typedef struct tierd_cache_1 {
  uint32_t size;
  /* Splits `bytes` of the tier among the host's editions, in slots of editions[e]->bytes. max_slots[e]: in,
   * the most that edition e can have; out, its share, at most that. Called before all else. */
  int (*share)(void* self, uint64_t bytes, uint32_t* max_slots);
  /* verdict[i] for the i-th missing neuron of `missing`. For what it keeps the cache names victims when the
   * edition has no free slot left (`free_slots`): at least as many, of the same edition, evictable, each
   * once. */
  int (*admit)(void* self, const tierd_set_view* missing, int priority, uint32_t free_slots, uint8_t* verdict,
               tierd_victims_out* victims);
  /* These neurons of `edition` are valid now; optional, like all that follows. */
  int (*landed)(void* self, uint32_t edition, const uint32_t* idx, uint32_t n);
  /* These are not here any more, or failed to come. */
  int (*dropped)(void* self, uint32_t edition, const uint32_t* idx, uint32_t n, int why);
  /* A step used these. */
  int (*touch)(void* self, const tierd_set_view* used);
  /* What should be here before the first step, or after a larger size: told by host->wish, edition by
   * edition, without a site. After `share`. */
  int (*fill)(void* self);
  /* What the passes after `site` should find in this memory, told by host->wish: asked at every site. What is
   * not kept then lies in staging blocks until it was used; in a memory that nobody computes from until its
   * pass is over, for whoever fetches from there. */
  int (*ahead)(void* self, uint32_t site);
  int (*end_step)(void* self);
  /* Another cache kept these neurons until now: [n] sets, one an edition, of what is valid. In place of the
   * `landed` of each; after `share`. NULL: each is told by `landed`. */
  int (*adopt)(void* self, const tierd_set_view* const* resident, uint32_t n);
  /* The tier holds `bytes` from now on: a new split, as `share` gives it, and victims wherever an edition
   * keeps more than that. What is not evictable now is not among them: it leaves when its use ends, as
   * `dropped` tells. NULL: the size cannot change. */
  int (*resize)(void* self, uint64_t bytes, uint32_t* max_slots, tierd_victims_out* victims);
  /* After `touch`: neurons of that edition which leave now, whether or not their room is needed; evictable,
   * each once. There is room for all of the edition's. */
  int (*expire)(void* self, uint32_t edition, tierd_victims_out* victims);
  /* After a step whose rows were a token and guesses of those that follow it: the first `kept` of the `rows`
   * were right, the others are forgotten. */
  int (*rows_kept)(void* self, uint32_t rows, uint32_t kept);
  /* After `end_step`: *wanted = 1 if another split of the bytes that there are would serve better. `resize`
   * is called next then, with the same bytes; nothing is on its way or in use. Needs `resize`. */
  int (*resplit)(void* self, uint32_t* wanted);
  /* A session is about to pass its first tokens; each memory's instance is told. */
  int (*begin_sequence)(void* self, uint64_t sequence);
  /* The session is over, or forgets its tokens; its number may begin again. An instance that took another's
   * place may hear of the end of a sequence that began before it came. */
  int (*end_sequence)(void* self, uint64_t sequence);
  /* Since 2.4. In the pass of `site`, nobody computes from the memories that this one fetches from: what
   * should come from there meanwhile, what matters most first, told by host->wish as in `fill`. It is fetched
   * as far as one of those memories holds it and there is time before the pass is over, some neurons at a
   * time, and asked for by `admit` with TIERD_PRIORITY_MIGRATION. Not called in passes of prompts. */
  int (*idle)(void* self, uint32_t site);
} tierd_cache_1;

#ifdef __cplusplus
}
#endif
#endif
