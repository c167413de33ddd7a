// Products straight from bitmaps of floats, with AVX-512. The places of a column's values are counted, not
// looked up: lane i takes value number popcount(bits below i) by a permutation, which takes a fraction of the
// time of VBMI2's expand (README.md).
#include "tiers/compute/kernel_sets.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/model/layout/row_group.h"

#define TIERD_BITALG \
  __attribute__((    \
      target("avx512f,avx512bw,avx512vl,avx512dq,avx512bitalg,avx512vpopcntdq,avx2,f16c,fma,popcnt,bmi2")))
#define TIERD_BITALG_INLINE TIERD_BITALG __attribute__((always_inline)) inline

namespace tierd::avx512_bitalg {
namespace {

constexpr uint32_t kMaskBytes = kGroupRows / 8;            // the bits of a column
constexpr uint32_t kBlockBits = kQuantBlock * kMaskBytes;  // bytes of bits of a block of 32 columns
constexpr uint32_t kChains = 4;            // blocks that a gemv of one token sums side by side
constexpr uint64_t kVector = 64;           // bytes that a load may read
constexpr uint64_t kPrefetchBytes = 2048;  // ahead of the values
constexpr uint64_t kMostValues = kChains * kQuantBlock * kGroupRows * sizeof(float);

// For each lane the mask of the bits of the rows below it, and its own bit: of one column in 32-bit lanes, or
// of two columns side by side in 16-bit lanes. The values of the second column follow those of the first.
struct Lanes {
  __m512i below;
  __m512i own;
  __m512i column_of;  // the two bytes of the 32 bits that belong to its column
  __m512i second;
};
template <Encoding E>
TIERD_BITALG_INLINE Lanes lanes() {
  constexpr bool kWords = E == Encoding::f32;
  alignas(64) uint32_t below32[16], own32[16];
  alignas(64) uint16_t below16[32], own16[32], second[32];
  alignas(64) uint8_t column_of[64];
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t bit = 1U << i % 16;
    below32[i % 16] = bit - 1;
    own32[i % 16] = bit;
    below16[i] = static_cast<uint16_t>(bit - 1);
    own16[i] = static_cast<uint16_t>(bit);
    second[i] = i < 16 ? 0 : 16;
    column_of[2 * i] = i < 16 ? 0 : 2;
    column_of[2 * i + 1] = i < 16 ? 1 : 3;
  }
  if (kWords)
    return {_mm512_load_si512(below32), _mm512_load_si512(own32), _mm512_setzero_si512(),
            _mm512_setzero_si512()};
  return {_mm512_load_si512(below16), _mm512_load_si512(own16), _mm512_load_si512(column_of),
          _mm512_load_si512(second)};
}

template <class Bits>
TIERD_BITALG_INLINE Bits load_bits(const std::byte* bits) {
  Bits loaded;
  std::memcpy(&loaded, bits, sizeof loaded);
  return loaded;
}
// Broadcasts the bits from memory: through a general register it takes longer.
TIERD_BITALG_INLINE __m512i spread(const std::byte* bits) {
  return _mm512_broadcastd_epi32(_mm_loadu_si32(bits));
}

// 16 weights of each of two columns: bit r of a column's 16 is row r's, and `values` has a value for each bit
// that is set.
struct Columns {
  __m512 first, second;
};
template <Encoding E>
TIERD_BITALG_INLINE __m512 to_floats(__m256i halves) {
  if constexpr (E == Encoding::f16) return _mm512_cvtph_ps(halves);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
template <Encoding E>
TIERD_BITALG_INLINE __m512 word_column(const Lanes& lanes, const std::byte* bits, const std::byte*& values) {
  const auto mask = load_bits<uint16_t>(bits);
  const __m512i all = _mm512_set1_epi32(mask);
  const __m512i place = _mm512_popcnt_epi32(_mm512_and_si512(all, lanes.below));
  const __m512 column =
      _mm512_maskz_permutexvar_ps(_mm512_test_epi32_mask(all, lanes.own), place, _mm512_loadu_ps(values));
  values += _mm_popcnt_u32(mask) * sizeof(float);
  return column;
}
template <Encoding E>
TIERD_BITALG_INLINE Columns two_columns(const Lanes& lanes, const std::byte* bits, const std::byte*& values) {
  if constexpr (E == Encoding::f32) {
    const __m512 first = word_column<E>(lanes, bits, values);
    return {first, word_column<E>(lanes, bits + kMaskBytes, values)};
  }
  const auto* const of_second = values + 2 * _mm_popcnt_u32(load_bits<uint16_t>(bits));
  const __m512i own = _mm512_shuffle_epi8(spread(bits), lanes.column_of);
  const __m512i place =
      _mm512_or_si512(_mm512_popcnt_epi16(_mm512_and_si512(own, lanes.below)), lanes.second);
  const __m512i next =
      _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(values))),
                         _mm256_loadu_si256(reinterpret_cast<const __m256i*>(of_second)), 1);
  const __m512i halves = _mm512_maskz_permutexvar_epi16(_mm512_test_epi16_mask(own, lanes.own), place, next);
  values += 2 * _mm_popcnt_u32(load_bits<uint32_t>(bits));
  return {to_floats<E>(_mm512_castsi512_si256(halves)), to_floats<E>(_mm512_extracti64x4_epi64(halves, 1))};
}

TIERD_BITALG_INLINE uint64_t count(const std::byte* bits, uint64_t bytes) {
  uint64_t sum = 0;
  for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), bits += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, bits, sizeof word);
    sum += static_cast<uint64_t>(_mm_popcnt_u64(word));
  }
  for (; bytes > 0; --bytes, ++bits)
    sum += static_cast<uint64_t>(_mm_popcnt_u32(std::to_integer<uint32_t>(*bits)));
  return sum;
}

// sums[t] += B blocks of `columns` columns by N tokens, block after block. values[b]: the values of block b.
// For a last column without a neighbour the neighbour's bits are 0.
template <Encoding E, int N, int B>
TIERD_BITALG_INLINE void add_blocks(const Lanes& lanes, const std::byte* bits, const std::byte* (&values)[B],
                                    uint32_t columns, const float* x, size_t ldx, __m512 (&sums)[N]) {
  __m512 p[B][N];
#pragma GCC unroll 4
  for (int b = 0; b < B; ++b) {
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) p[b][t] = _mm512_setzero_ps();
  }
  const uint32_t even = columns & ~1U;
#pragma GCC unroll 2
  for (uint32_t c = 0; c < even; c += 2) {
#pragma GCC unroll 4
    for (int b = 0; b < B; ++b) {
      const Columns w = two_columns<E>(lanes, bits + b * kBlockBits + c * kMaskBytes, values[b]);
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) {
        const float* const xt = x + t * ldx + b * kQuantBlock + c;
        p[b][t] = _mm512_fmadd_ps(w.first, _mm512_set1_ps(xt[0]), p[b][t]);
        p[b][t] = _mm512_fmadd_ps(w.second, _mm512_set1_ps(xt[1]), p[b][t]);
      }
    }
  }
  if (even != columns) {
    std::byte alone[2 * kMaskBytes] = {};
    std::memcpy(alone, bits + even * kMaskBytes, kMaskBytes);
    const __m512 w = two_columns<E>(lanes, alone, values[0]).first;
    for (int t = 0; t < N; ++t) p[0][t] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[t * ldx + even]), p[0][t]);
  }
#pragma GCC unroll 4
  for (int b = 0; b < B; ++b) {
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) sums[t] = _mm512_add_ps(sums[t], p[b][t]);
  }
}

// The same for the next blocks, if all their values are before the end; false if there are too few.
template <Encoding E, int N, int B>
TIERD_BITALG_INLINE bool add_next(const Lanes& lanes, const std::byte* bits, BitmapValues& values,
                                  uint32_t columns, const float* x, size_t ldx, __m512 (&sums)[N]) {
  const std::byte* at[B];
  uint64_t taken = 0;
  uint64_t begin[B];
#pragma GCC unroll 4
  for (int b = 0; b < B; ++b) {
    begin[b] = taken;
    taken += count(bits + b * kBlockBits, columns * kMaskBytes) * block_bytes(E);
  }
  const auto left = static_cast<uint64_t>(values.end - values.at);
  if (taken > left) return false;
  if (left >= taken + kVector) {
    for (uint64_t i = 0; i < taken; i += kVector) __builtin_prefetch(values.at + kPrefetchBytes + i);
    for (int b = 0; b < B; ++b) at[b] = values.at + begin[b];
    add_blocks<E, N, B>(lanes, bits, at, columns, x, ldx, sums);
  } else {
    // Vector loads would go beyond the end, so the last values are copied.
    alignas(64) std::byte last[kMostValues + kVector];
    std::memcpy(last, values.at, taken);
    for (int b = 0; b < B; ++b) at[b] = last + begin[b];
    add_blocks<E, N, B>(lanes, bits, at, columns, x, ldx, sums);
  }
  values.at += taken;
  return true;
}

template <Encoding E, int N>
TIERD_BITALG const std::byte* multiply(const std::byte* bits, BitmapValues values, uint32_t groups,
                                       uint32_t cols, const float* x, size_t ldx, float* y, size_t ldy) {
  constexpr int kAtOnce = N == 1 ? kChains : 1;
  const Lanes all = lanes<E>();
  for (uint32_t g = 0; g < groups; ++g, y += kGroupRows) {
    __m512 sums[N];
    for (int t = 0; t < N; ++t) sums[t] = _mm512_setzero_ps();
    uint32_t c = 0;
    for (; c + kAtOnce * kQuantBlock <= cols; c += kAtOnce * kQuantBlock, bits += kAtOnce * kBlockBits) {
      if (!add_next<E, N, kAtOnce>(all, bits, values, kQuantBlock, x + c, ldx, sums)) return nullptr;
    }
    for (uint32_t columns = 0; c < cols; c += columns, bits += columns * kMaskBytes) {
      columns = std::min(kQuantBlock, cols - c);
      if (!add_next<E, N, 1>(all, bits, values, columns, x + c, ldx, sums)) return nullptr;
    }
    for (int t = 0; t < N; ++t) _mm512_storeu_ps(y + t * ldy, sums[t]);
  }
  return values.at;
}

using Multiply = const std::byte* (*)(const std::byte*, BitmapValues, uint32_t, uint32_t, const float*,
                                      size_t, float*, size_t);
template <Encoding E>
constexpr Multiply kMultiply[kFewTokens] = {multiply<E, 1>, multiply<E, 2>, multiply<E, 3>, multiply<E, 4>};

}  // namespace

const std::byte* gemv_bitmap(Encoding e, const std::byte* bits, BitmapValues values, uint32_t groups,
                             uint32_t cols, const float* x, size_t ldx, uint32_t tokens, float* y,
                             size_t ldy) {
  TIERD_CHECK(tokens >= 1 && tokens <= kFewTokens);
  const Multiply* const multiply = e == Encoding::f32   ? kMultiply<Encoding::f32>
                                   : e == Encoding::f16 ? kMultiply<Encoding::f16>
                                                        : kMultiply<Encoding::bf16>;
  return multiply[tokens - 1](bits, values, groups, cols, x, ldx, y, ldy);
}

}  // namespace tierd::avx512_bitalg
#endif
