// Columns of block encodings by int8 factors with AVX2: two columns side by side, a multiplication of pairs.
#include "tiers/compute/columns.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#define TIERD_AVX2 __attribute__((target("avx2,fma,f16c")))
#define TIERD_AVX2_INLINE TIERD_AVX2 __attribute__((always_inline)) inline

namespace tierd::avx2 {
namespace {

constexpr uint32_t kHalf = 16;
// Two products of a nibble and an int8 are at most 2 * 15 * 127; eight of them fit into 16 bits.
constexpr uint32_t kPairsIn16Bits = 8;

TIERD_AVX2_INLINE __m128i load(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

// Interleaves 16 bytes of each of two columns.
TIERD_AVX2_INLINE __m256i in_turn(const uint8_t* a, const uint8_t* b) {
  const __m128i x = load(a), y = load(b);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi8(x, y)), _mm_unpackhi_epi8(x, y), 1);
}

TIERD_AVX2_INLINE void add_words(__m256i words, __m256i (&sum)[2]) {
  sum[0] = _mm256_add_epi32(sum[0], _mm256_cvtepi16_epi32(_mm256_castsi256_si128(words)));
  sum[1] = _mm256_add_epi32(sum[1], _mm256_cvtepi16_epi32(_mm256_extracti128_si256(words, 1)));
}

// sum[half] += the products of one block, 16 outputs each.
TIERD_AVX2_INLINE void dot_q4_0(const ColumnStrip& strip, const ColumnFactors& factors, uint32_t b,
                                __m256i (&sum)[2][2]) {
  const __m256i nibble = _mm256_set1_epi8(15);
  const size_t at = size_t{b} * quant_bytes(Encoding::q4_0);
  const uint32_t pairs = 2 * strip.words;
  for (uint32_t first = 0; first < pairs; first += kPairsIn16Bits) {
    __m256i low = _mm256_setzero_si256(), high = low;
    const uint32_t last = std::min(pairs, first + kPairsIn16Bits);
    for (uint32_t p = first; p < last; ++p) {
      const __m256i both = in_turn(strip.columns[2 * p] + at, strip.columns[2 * p + 1] + at);
      int16_t two;
      std::memcpy(&two, reinterpret_cast<const uint8_t*>(&factors.words[p / 2][b]) + p % 2 * sizeof two,
                  sizeof two);
      const __m256i factor = _mm256_set1_epi16(two);
      low = _mm256_add_epi16(low, _mm256_maddubs_epi16(_mm256_and_si256(both, nibble), factor));
      high = _mm256_add_epi16(
          high, _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(both, 4), nibble), factor));
    }
    add_words(low, sum[0]);
    add_words(high, sum[1]);
  }
}

TIERD_AVX2_INLINE void dot_q8_0(const ColumnStrip& strip, const ColumnFactors& factors, uint32_t b,
                                __m256i (&sum)[2][2]) {
  const size_t at = size_t{b} * quant_bytes(Encoding::q8_0);
  for (uint32_t p = 0; p < 2 * strip.words; ++p) {
    int8_t two[2];
    std::memcpy(two, reinterpret_cast<const int8_t*>(&factors.words[p / 2][b]) + p % 2 * sizeof two,
                sizeof two);
    const __m256i factor = _mm256_set1_epi32(static_cast<uint16_t>(two[0]) | two[1] * 65536);
    for (uint32_t half = 0; half < 2; ++half) {
      const __m256i both =
          in_turn(strip.columns[2 * p] + at + half * kHalf, strip.columns[2 * p + 1] + at + half * kHalf);
      const __m256i first = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(both));
      const __m256i second = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(both, 1));
      sum[half][0] = _mm256_add_epi32(sum[half][0], _mm256_madd_epi16(first, factor));
      sum[half][1] = _mm256_add_epi32(sum[half][1], _mm256_madd_epi16(second, factor));
    }
  }
}

}  // namespace

TIERD_AVX2 void Columns::add_strip(Encoding e, const ColumnStrip& strip) {
  for (uint32_t t = 0; t < strip.tokens; ++t) {
    const ColumnFactors& factors = strip.factors[t];
    for (uint32_t b = 0; b < strip.blocks; ++b) {
      if (t == 0 && strip.ahead != nullptr) strip.ahead->ask((strip.lines + strip.blocks - 1) / strip.blocks);
      __m256i sum[2][2];
      // Signed bytes are multiplied as they are, without the offset.
      const __m256i start = _mm256_set1_epi32(e == Encoding::q4_0 ? factors.start[b] : 0);
      for (auto& half : sum) half[0] = half[1] = start;
      if (e == Encoding::q4_0) {
        dot_q4_0(strip, factors, b, sum);
      } else {
        dot_q8_0(strip, factors, b, sum);
      }
      const __m256 scale = _mm256_set1_ps(factors.scale[b]);
      float* y = strip.y + t * strip.ldy + size_t{b} * kQuantBlock;
      for (uint32_t i = 0; i < 4; ++i) {
        float* out = y + 8 * i;
        _mm256_storeu_ps(out,
                         _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(sum[i / 2][i % 2]), _mm256_loadu_ps(out)));
      }
    }
  }
}

}  // namespace tierd::avx2
#endif
