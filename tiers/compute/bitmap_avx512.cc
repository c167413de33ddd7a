// Bitmaps with AVX-512 VBMI2, whose expand instructions spread the next values over a vector by a mask.
#include "tiers/compute/kernel_sets.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <bit>
#include <cstring>

#define TIERD_VBMI2 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt,bmi2")))

namespace tierd::avx512_vbmi2 {
namespace {

constexpr uint64_t kVector = 64;
constexpr uint64_t kPrefetchBytes = 4096;  // ahead of the values

template <class Mask>
TIERD_VBMI2 inline Mask next_mask(const std::byte* bits) {
  Mask mask;
  std::memcpy(&mask, bits, sizeof mask);
  return mask;
}

// Whole vectors, while a load stays before the end; the plain loop does the rest.
#define TIERD_EXPAND(name, Mask, instruction)                                                         \
  TIERD_VBMI2 const std::byte* name(const Bitmap& bitmap, const std::byte* bits, BitmapValues values, \
                                    uint64_t elements, std::byte* out) {                              \
    constexpr uint64_t kElements = 8 * sizeof(Mask);                                                  \
    constexpr uint64_t kBytes = kVector / kElements;                                                  \
    const __m512i zero = _mm512_set1_epi8(std::to_integer<char>(bitmap.zero));                        \
    for (; elements >= kElements && values.end - values.at >= static_cast<std::ptrdiff_t>(kVector);   \
         elements -= kElements, bits += sizeof(Mask), out += kVector) {                               \
      const Mask mask = next_mask<Mask>(bits);                                                        \
      __builtin_prefetch(values.at + kPrefetchBytes);                                                 \
      _mm512_storeu_si512(out, instruction(zero, mask, _mm512_loadu_si512(values.at)));               \
      values.at += static_cast<uint64_t>(std::popcount(mask)) * kBytes;                               \
    }                                                                                                 \
    return expand_bitmap_plainly(bitmap, bits, values, elements, out);                                \
  }
TIERD_EXPAND(expand_bytes, uint64_t, _mm512_mask_expand_epi8)
TIERD_EXPAND(expand_halves, uint32_t, _mm512_mask_expand_epi16)
TIERD_EXPAND(expand_words, uint16_t, _mm512_mask_expand_epi32)
#undef TIERD_EXPAND

}  // namespace

const std::byte* expand_bitmap(const Bitmap& bitmap, const std::byte* bits, BitmapValues values,
                               uint64_t elements, std::byte* out) {
  switch (bitmap.element_bytes) {
    case 1:
      return expand_bytes(bitmap, bits, values, elements, out);
    case 2:
      return expand_halves(bitmap, bits, values, elements, out);
    default:
      return expand_words(bitmap, bits, values, elements, out);
  }
}

}  // namespace tierd::avx512_vbmi2
#endif
