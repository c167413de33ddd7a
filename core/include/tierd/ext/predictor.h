/* tierd.predictor/1: which neurons a step uses. All functions: [kernel thread], must not block. Only a lossy
 * predictor may let the active set depend on residency: the result for one text then differs with the size of
 * the memory. */
#ifndef TIERD_EXT_PREDICTOR_H
#define TIERD_EXT_PREDICTOR_H

#include "tierd/host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIERD_PREDICTOR_1 "tierd.predictor/1"

enum {
  TIERD_PREDICTOR_NEEDS_X = 1,
  TIERD_PREDICTOR_NEEDS_TRUTH = 2,
  TIERD_PREDICTOR_NEEDS_ALL_TRUTH = 4,
  TIERD_PREDICTOR_LOSSY = 8,
  TIERD_PREDICTOR_SCORES = 16, /* writes tierd_set_out::score where the host asks for it */
  /* The predictor is lossy, and its choice for a row depends neither on the other rows of the batch nor on
   * the steps before. The loss of such a predictor may be measured on many rows at once. Since 2.8. */
  TIERD_PREDICTOR_ROWS_APART = 32
};

typedef struct tierd_predictor_1 {
  uint32_t size;
  /* The predictor's needs and abilities: TIERD_PREDICTOR_… . */
  uint32_t (*caps)(void* self);
  /* Returns the active set of `site` for these rows: `all`, or neurons in ascending order. Where
   * out->row_mask is given, every bit of it is set: the plugin clears the bits of rows that do not use a
   * neuron, or leaves the mask alone. */
  int (*predict)(void* self, uint32_t site, const tierd_rows_view* rows, tierd_set_out* out);
  /* Requests, by host->wish, neurons of the sites after `site`, the nearest first. Optional (NULL). */
  int (*look_ahead)(void* self, uint32_t site, const tierd_rows_view* rows);
  /* Receives the predicted and the true set, the latter as far as truth->known says. Optional. */
  int (*observe)(void* self, const tierd_set_view* predicted, const tierd_set_view* truth);
  /* A session is about to pass its first tokens: rows of this sequence follow. Optional. */
  int (*begin_sequence)(void* self, uint64_t sequence);
  /* The session is over, or discards its tokens; its number may be used again. Optional. An instance that has
   * replaced another may receive the end, and rows, of a sequence that began before the swap. */
  int (*end_sequence)(void* self, uint64_t sequence);
  /* With TIERD_PREDICTOR_NEEDS_X, called once for every site: returns 1 if predict and look_ahead need
   * rows->x, the site's input, there; else 0, so that the kernel need not wait for it. NULL: always 1. */
  int (*reads_x)(void* self, uint32_t site);
  /* Returns TIERD_OK if the predictor can work with the present sizes of memories (tierd_memory_view);
   * TIERD_E_NO_SPACE, and logs why, if it cannot; TIERD_E_UNSUPPORTED, and logs the remedy, if it cannot work
   * with any sizes. Called before a run begins, before an instance replaces another and before a memory is
   * resized; an error cancels that. The call must have no side effects. Optional. Since 2.9. */
  int (*fits)(void* self);
} tierd_predictor_1;

#ifdef __cplusplus
}
#endif
#endif
