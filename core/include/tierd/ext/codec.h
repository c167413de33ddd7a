/* tierd.codec/1, of a codec: what writes the bytes of a neuron as fewer bytes, and gives them back.
 *
 * [any thread], one call at a time for an instance, which may come from another thread each time. The host
 * makes as many instances as it has calls at the same time, on any thread, one after the other. A codec sees
 * no sites, editions, memories or units. It may block for as long as the work takes.
 *
 * No call depends on those before it: for the same parameters the same bytes are compressed to the same
 * bytes, and any instance of the plugin, whatever its parameters, expands what another one has compressed. */
#ifndef TIERD_EXT_CODEC_H
#define TIERD_EXT_CODEC_H

#include "tierd/host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIERD_CODEC_1 "tierd.codec/1"

/* What `bound` may answer at most for n bytes: 2 n and this. */
#define TIERD_CODEC_MOST_BEYOND 65536

typedef struct tierd_codec_1 {
  uint32_t size;
  /* *bytes: the most that `compress` writes for any n bytes. */
  int (*bound)(void* self, uint64_t n, uint64_t* bytes);
  /* Compresses the n bytes of `in` into at most `cap` bytes of `out`; *written: how many those are, at least
   * one. TIERD_E_NO_SPACE: they are more than `cap`, which is allowed where `cap` is less than the bound. */
  int (*compress)(void* self, const void* in, uint64_t n, void* out, uint64_t cap, uint64_t* written);
  /* Expands what `compress` wrote, which begins at `in`, to exactly the n_out bytes that it was made from.
   * Bytes that lie behind it, within n_in, are passed over: an extent is padded. TIERD_E_INVALID: it is not
   * what `compress` wrote, it is cut short, or it was made from more or fewer bytes. `in` may come from
   * anybody: whatever it holds, nothing beyond the two arrays is read or written, and the memory that the
   * call takes is bounded by n_in and n_out. After an error `out` may hold anything. */
  int (*expand)(void* self, const void* in, uint64_t n_in, void* out, uint64_t n_out);
} tierd_codec_1;

#ifdef __cplusplus
}
#endif
#endif
