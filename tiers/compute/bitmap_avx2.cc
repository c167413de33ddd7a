// Bitmaps with AVX2: eight elements at a time. For each of the 256 values of their bits a table has the
// places of the elements among the next values.
#include "tiers/compute/kernel_sets.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#include <bit>

#define TIERD_AVX2 __attribute__((target("avx2,popcnt")))

namespace tierd::avx2 {
namespace {

constexpr uint64_t kAtOnce = 8;
constexpr uint64_t kPrefetchBytes = 4096;  // ahead of the values
constexpr uint8_t kNone = 0x80;            // pshufb writes a zero for it

// For each byte of bits and each of eight elements of kBytes bytes: the places of its bytes among the values.
template <uint32_t kBytes>
using Places = std::array<std::array<uint8_t, kAtOnce * kBytes>, 256>;
template <uint32_t kBytes>
constexpr Places<kBytes> make_places() {
  Places<kBytes> places{};
  for (uint32_t bits = 0; bits < 256; ++bits) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const bool set = (bits >> i & 1) != 0;
      for (uint32_t b = 0; b < kBytes; ++b)
        places[bits][i * kBytes + b] = set ? static_cast<uint8_t>(value * kBytes + b) : kNone;
      value += set ? 1 : 0;
    }
  }
  return places;
}
// The same by number of the value, for the instruction that permutes whole words across the vector.
constexpr std::array<std::array<uint8_t, kAtOnce>, 256> make_words() {
  std::array<std::array<uint8_t, kAtOnce>, 256> words{};
  for (uint32_t bits = 0; bits < 256; ++bits) {
    uint8_t value = 0;
    for (uint32_t i = 0; i < kAtOnce; ++i) words[bits][i] = (bits >> i & 1) != 0 ? value++ : kNone;
  }
  return words;
}
alignas(16) constexpr Places<1> kBytePlaces = make_places<1>();
alignas(16) constexpr Places<2> kHalfPlaces = make_places<2>();
alignas(16) constexpr auto kWordPlaces = make_words();

// Permutes some values. Xoring both with the zeros makes bytes without a value the zero.
TIERD_AVX2 inline void expand_bytes(__m128i zero, uint32_t bits, const std::byte* values, std::byte* out) {
  const __m128i next = _mm_xor_si128(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(values)), zero);
  const __m128i places = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kBytePlaces[bits].data()));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_xor_si128(_mm_shuffle_epi8(next, places), zero));
}
TIERD_AVX2 inline void expand_halves(__m128i zero, uint32_t bits, const std::byte* values, std::byte* out) {
  const __m128i next = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)), zero);
  const __m128i places = _mm_load_si128(reinterpret_cast<const __m128i*>(kHalfPlaces[bits].data()));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_xor_si128(_mm_shuffle_epi8(next, places), zero));
}
TIERD_AVX2 inline void expand_words(__m128i zero, uint32_t bits, const std::byte* values, std::byte* out) {
  const __m256i zeros = _mm256_broadcastsi128_si256(zero);
  const __m256i next = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
  const __m256i places =
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(kWordPlaces[bits].data())));
  const __m256i spread = _mm256_permutevar8x32_epi32(next, places);
  const __m256i none = _mm256_srai_epi32(places, 31);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_blendv_epi8(spread, zeros, none));
}

// Runs while a load stays before the end; the plain loop does the rest.
template <uint32_t kBytes>
TIERD_AVX2 const std::byte* expand(const Bitmap& bitmap, const std::byte* bits, BitmapValues values,
                                   uint64_t elements, std::byte* out) {
  constexpr uint64_t kOut = kAtOnce * kBytes;
  const __m128i zero = _mm_set1_epi8(std::to_integer<char>(bitmap.zero));
  for (; elements >= kAtOnce && values.end - values.at >= static_cast<std::ptrdiff_t>(kOut);
       elements -= kAtOnce, ++bits, out += kOut) {
    const auto mask = std::to_integer<uint32_t>(*bits);
    __builtin_prefetch(values.at + kPrefetchBytes);
    if constexpr (kBytes == 1) expand_bytes(zero, mask, values.at, out);
    if constexpr (kBytes == 2) expand_halves(zero, mask, values.at, out);
    if constexpr (kBytes == 4) expand_words(zero, mask, values.at, out);
    values.at += static_cast<uint64_t>(std::popcount(mask)) * kBytes;
  }
  return expand_bitmap_plainly(bitmap, bits, values, elements, out);
}

}  // namespace

const std::byte* expand_bitmap(const Bitmap& bitmap, const std::byte* bits, BitmapValues values,
                               uint64_t elements, std::byte* out) {
  switch (bitmap.element_bytes) {
    case 1:
      return expand<1>(bitmap, bits, values, elements, out);
    case 2:
      return expand<2>(bitmap, bits, values, elements, out);
    default:
      return expand<4>(bitmap, bits, values, elements, out);
  }
}

}  // namespace tierd::avx2
#endif
