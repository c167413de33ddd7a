/* tierd.codec/1, of a codec: compresses the bytes of a neuron and expands them again.
 *
 * [any thread], one call at a time for an instance, but not always on the same thread. The host makes as many
 * instances as it has concurrent calls, one after the other, on any thread. A codec sees no sites, editions,
 * memories or units. It may block for as long as the work takes.
 *
 * No call depends on earlier ones: with the same parameters the same bytes are compressed to the same bytes,
 * and any instance of the plugin, whatever its parameters, expands bytes that another instance has
 * compressed. */
#ifndef TIERD_EXT_CODEC_H
#define TIERD_EXT_CODEC_H

#include "tierd/host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIERD_CODEC_1 "tierd.codec/1"

/* The result of `bound` for n bytes is at most 2 n and this. */
#define TIERD_CODEC_MOST_BEYOND 65536

typedef struct tierd_codec_1 {
  uint32_t size;
  /* *bytes: the most that `compress` writes for any n bytes. */
  int (*bound)(void* self, uint64_t n, uint64_t* bytes);
  /* Compresses the n bytes of `in` into at most `cap` bytes of `out`; *written: their number, at least one.
   * TIERD_E_NO_SPACE: the result exceeds `cap`, which is allowed if `cap` is less than the bound. */
  int (*compress)(void* self, const void* in, uint64_t n, void* out, uint64_t cap, uint64_t* written);
  /* Expands the output of `compress`, which begins at `in`, to exactly the n_out bytes that it was made from.
   * Bytes after it, within n_in, are ignored: an extent is padded. TIERD_E_INVALID: the input is not the
   * output of `compress`, is truncated, or was made from more or fewer bytes. `in` is untrusted: whatever it
   * holds, the call accesses nothing outside the two arrays, and n_in and n_out bound the memory that it
   * allocates. After an error the content of `out` is undefined. */
  int (*expand)(void* self, const void* in, uint64_t n_in, void* out, uint64_t n_out);
} tierd_codec_1;

#ifdef __cplusplus
}
#endif
#endif
