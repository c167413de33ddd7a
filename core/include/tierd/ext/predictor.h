/* tierd.predictor/1: which neurons a step uses. All functions: [kernel thread], must not block. What is
 * active depends on what is resident only where a lossy predictor says so: the same text then differs with
 * the memory that it has. */
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
  TIERD_PREDICTOR_SCORES = 16, /* writes tierd_set_out::score where it is wanted */
  /* A lossy predictor whose choice for a row depends neither on the other rows of the batch nor on the steps
   * before. The loss of such a predictor may be measured on many rows at once. Since 2.8. */
  TIERD_PREDICTOR_ROWS_APART = 32
};

typedef struct tierd_predictor_1 {
  uint32_t size;
  /* What it needs and may do: TIERD_PREDICTOR_… . */
  uint32_t (*caps)(void* self);
  /* The active set of `site` for these rows: `all`, or neurons in ascending order. Where out->row_mask is
   * given, every bit of it is set: the plugin clears those of rows that do not use a neuron, or leaves it
   * alone. */
  int (*predict)(void* self, uint32_t site, const tierd_rows_view* rows, tierd_set_out* out);
  /* What the sites after `site` will want, nearest first: told by host->wish. Optional (NULL). */
  int (*look_ahead)(void* self, uint32_t site, const tierd_rows_view* rows);
  /* What was predicted and what was true, as far as truth->known says. Optional. */
  int (*observe)(void* self, const tierd_set_view* predicted, const tierd_set_view* truth);
  /* A session is about to pass its first tokens: rows of this sequence follow. Optional. */
  int (*begin_sequence)(void* self, uint64_t sequence);
  /* The session is over, or forgets its tokens; its number may begin again. Optional. An instance that took
   * another's place may hear of the end, and see rows, of a sequence that began before it came. */
  int (*end_sequence)(void* self, uint64_t sequence);
  /* With TIERD_PREDICTOR_NEEDS_X, once for every site: 1 when predict and look_ahead of it want rows->x, what
   * the site computes from; 0 when they do not, which saves the kernel waiting for it. NULL: of every site.
   */
  int (*reads_x)(void* self, uint32_t site);
  /* Whether it can work with the sizes of memories that the host says now (tierd_memory_view): TIERD_OK, or
   * TIERD_E_NO_SPACE with a line of why not; TIERD_E_UNSUPPORTED with a line that names the remedy where it
   * cannot with any. The host asks it before a run begins, before an instance takes another's place, and
   * before a memory gets another size, and gives that up where the answer is no; nothing may follow from a
   * question. Optional. Since 2.9. */
  int (*fits)(void* self);
} tierd_predictor_1;

#ifdef __cplusplus
}
#endif
#endif
