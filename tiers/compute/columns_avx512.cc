// Columns of block encodings by int8 factors with AVX-512: the bytes of four columns are put side by side by
// one permutation (VBMI), and one instruction (VNNI) multiplies 16 outputs of all four.
#include "tiers/compute/columns.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#include <cstring>

#include "core/base/check.h"

#define TIERD_VBMI \
  __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512vnni,avx512vbmi,fma,f16c")))
#define TIERD_VBMI_INLINE TIERD_VBMI __attribute__((always_inline)) inline

namespace tierd::avx512_vnni {
namespace {

constexpr uint32_t kHalf = 16;  // outputs of a vector

// Byte 4 j + i from byte 16 i + j.
constexpr std::array<uint8_t, 64> kSideBySide = [] {
  std::array<uint8_t, 64> order{};
  for (size_t j = 0; j < 16; ++j) {
    for (size_t i = 0; i < 4; ++i) order[4 * j + i] = static_cast<uint8_t>(16 * i + j);
  }
  return order;
}();

// 16 bytes of each of four columns.
TIERD_VBMI_INLINE __m512i side_by_side(const uint8_t* const* columns, size_t at, __m512i order) {
  const auto load = [&](int i) TIERD_VBMI {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(columns[i] + at));
  };
  __m512i all = _mm512_castsi128_si512(load(0));
  all = _mm512_inserti32x4(all, load(1), 1);
  all = _mm512_inserti32x4(all, load(2), 2);
  all = _mm512_inserti32x4(all, load(3), 3);
  return _mm512_permutexvar_epi8(order, all);
}

// The two halves of a block, as unsigned bytes.
template <Encoding E>
TIERD_VBMI_INLINE void load_block(const uint8_t* const* columns, uint32_t block, __m512i order, __m512i& low,
                                  __m512i& high) {
  const size_t at = size_t{block} * block_bytes(E) + 2;
  if constexpr (E == Encoding::q4_0) {
    const __m512i nibble = _mm512_set1_epi8(15);
    const __m512i both = side_by_side(columns, at, order);
    low = _mm512_and_si512(both, nibble);
    high = _mm512_and_si512(_mm512_srli_epi16(both, 4), nibble);
  } else {
    const __m512i sign = _mm512_set1_epi8(-128);
    low = _mm512_xor_si512(side_by_side(columns, at, order), sign);
    high = _mm512_xor_si512(side_by_side(columns, at + kHalf, order), sign);
  }
}

// The part-th of `parts` parts of a strip of four columns.
template <Encoding E>
TIERD_VBMI_INLINE void fetch_part(const uint8_t* const* columns, uint32_t part, uint32_t parts) {
  constexpr size_t kLine = 64;
  for (size_t at = part * kLine; at < kStripBlocks * block_bytes(E); at += parts * kLine) {
    for (uint32_t i = 0; i < kColumnsInWord; ++i) __builtin_prefetch(columns[i] + at, 0, kSecondCache);
  }
}

// B blocks from `first` on, for N tokens.
template <Encoding E, int N, int B>
TIERD_VBMI_INLINE void add_blocks(const ColumnStrip& strip, uint32_t first, __m512i order) {
  __m512i sum[B][N][2];
#pragma GCC unroll 4
  for (int b = 0; b < B; ++b) {
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t)
      sum[b][t][0] = sum[b][t][1] = _mm512_set1_epi32(strip.factors[t].start[first + b]);
  }
  for (uint32_t w = 0; w < strip.words; ++w) {
    const uint8_t* const* columns = strip.columns + size_t{w} * kColumnsInWord;
    if (strip.ahead != nullptr)
      fetch_part<E>(strip.ahead + size_t{w} * kColumnsInWord, first / B, kStripBlocks / B);
#pragma GCC unroll 4
    for (int b = 0; b < B; ++b) {
      __m512i low, high;
      load_block<E>(columns, first + b, order, low, high);
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) {
        const __m512i factor = _mm512_set1_epi32(strip.factors[t].words[w][first + b]);
        sum[b][t][0] = _mm512_dpbusd_epi32(sum[b][t][0], low, factor);
        sum[b][t][1] = _mm512_dpbusd_epi32(sum[b][t][1], high, factor);
      }
    }
  }
#pragma GCC unroll 4
  for (int b = 0; b < B; ++b) {
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) {
      float* y = strip.y + t * strip.ldy + size_t{first + b} * kQuantBlock;
      const __m512 scale = _mm512_set1_ps(strip.factors[t].scale[first + b]);
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        float* out = y + half * kHalf;
        const __m512 add = _mm512_cvtepi32_ps(sum[b][t][half]);
        _mm512_storeu_ps(out, _mm512_fmadd_ps(scale, add, _mm512_loadu_ps(out)));
      }
    }
  }
}

template <Encoding E, int N>
TIERD_VBMI void add_strip_of(const ColumnStrip& strip) {
  const __m512i order = _mm512_loadu_si512(kSideBySide.data());
  constexpr int kAtOnce = N == 1 ? 4 : N == 2 ? 2 : 1;  // eight sums, and the registers for them
  uint32_t b = 0;
  for (; b + kAtOnce <= strip.blocks; b += kAtOnce) add_blocks<E, N, kAtOnce>(strip, b, order);
  for (; b < strip.blocks; ++b) add_blocks<E, N, 1>(strip, b, order);
}

template <Encoding E>
void add_strip_of(const ColumnStrip& strip) {
  static_assert(kColumnTokens == 4);
  switch (strip.tokens) {
    case 1:
      return add_strip_of<E, 1>(strip);
    case 2:
      return add_strip_of<E, 2>(strip);
    case 3:
      return add_strip_of<E, 3>(strip);
    default:
      return add_strip_of<E, 4>(strip);
  }
}

// Of q4_0: every ninth of 144 words, 128 of which four vectors hold.
TIERD_VBMI void load_scales_q4_0(const uint8_t* blocks, float* scales) {
  static_assert(block_bytes(Encoding::q4_0) == 18);
  const __m512i first = _mm512_zextsi128_si512(_mm_setr_epi16(0, 9, 18, 27, 36, 45, 54, 63));
  const __m512i second = _mm512_zextsi128_si512(_mm_setr_epi16(8, 17, 26, 35, 44, 53, 62, 0));
  const auto load = [&](int i) TIERD_VBMI { return _mm512_loadu_si512(blocks + 64 * i); };
  const __m128i low = _mm512_castsi512_si128(_mm512_permutex2var_epi16(load(0), first, load(1)));
  const __m128i high = _mm512_castsi512_si128(_mm512_permutex2var_epi16(load(2), second, load(3)));
  int16_t last;
  std::memcpy(&last, blocks + 15 * block_bytes(Encoding::q4_0), sizeof last);
  const __m256i halves = _mm256_setr_m128i(low, _mm_insert_epi16(high, last, 7));
  _mm512_storeu_ps(scales, _mm512_cvtph_ps(halves));
}

}  // namespace

void Columns::load_scales(Encoding e, const uint8_t* blocks, float* scales) {
  if (e == Encoding::q4_0) return load_scales_q4_0(blocks, scales);
  avx2::Columns::load_scales(e, blocks, scales);
}

bool Columns::supported() {
  return __builtin_cpu_supports("avx512vbmi") != 0 && __builtin_cpu_supports("avx512vnni") != 0;
}

void Columns::add_strip(Encoding e, const ColumnStrip& strip) {
  TIERD_CHECK(strip.tokens >= 1 && strip.tokens <= kColumnTokens);
  return e == Encoding::q4_0 ? add_strip_of<Encoding::q4_0>(strip) : add_strip_of<Encoding::q8_0>(strip);
}

}  // namespace tierd::avx512_vnni
#endif
