// How a warp reads a bitmap: each lane has the bits of 16 dense bytes, computes how many values the lanes
// before it have, and reads its own values as one run of words.
#pragma once

#include "tiers/gpu/cuda/bitmap.h"
#include "tiers/gpu/cuda/device_values.cuh"

namespace tierd::cuda {

struct SumOfLanes {
  uint32_t before;  // of the lanes before this one
  uint32_t all;
};
__device__ inline SumOfLanes sum_of_lanes(uint32_t value, uint32_t lane) {
  SumOfLanes sum{0, value};
#pragma unroll
  for (uint32_t i = 1; i < kWarp; i *= 2) {
    const uint32_t other = __shfl_xor_sync(~0u, sum.all, i);
    if ((lane & i) != 0) sum.before += other;
    sum.all += other;
  }
  return sum;
}

// The same for N numbers at once, if the sum of 31 lanes fits into kFieldBits bits.
template <int kFieldBits, int N>
__device__ void sums_before_lane(const uint32_t (&counts)[N], uint32_t lane, uint32_t (&before)[N]) {
  constexpr int kFields = 32 / kFieldBits;
#pragma unroll
  for (int first = 0; first < N; first += kFields) {
    uint32_t packed = 0;
#pragma unroll
    for (int i = first; i < N && i < first + kFields; ++i) packed |= counts[i] << (i - first) * kFieldBits;
    packed = sum_of_lanes(packed, lane).before;
#pragma unroll
    for (int i = first; i < N && i < first + kFields; ++i)
      before[i] = packed >> (i - first) * kFieldBits & ((1u << kFieldBits) - 1);
  }
}

// For each pattern of four bits, the selector by which permute() moves values to their elements.
template <uint32_t kElement>
struct Spread;
template <>
struct Spread<1> {
  // Selects a byte of the first word if the bit is set, else a byte of the second word, which is zeros. Bits
  // 16 and up: how many bits of the values are consumed.
  uint32_t selector;
  __device__ static Spread of(uint32_t bits) {
    uint32_t selector = 0, rank = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      const bool set = (bits >> i & 1) != 0;
      selector |= (set ? rank : 4) << 4 * i;
      rank += set ? 1 : 0;
    }
    return {selector | rank * 8 << 16};
  }
};
template <>
struct alignas(16) Spread<2> {
  uint32_t selectors;  // of two words; a bit that is not set selects the fourth value
  uint32_t fourth;     // mask of the second word: clears the fourth value unless all four bits are set
  uint32_t once;       // the bits that are consumed, in two steps of at most 32
  uint32_t twice;
  __device__ static Spread of(uint32_t bits) {
    uint32_t selectors = 0, rank = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      const bool set = (bits >> i & 1) != 0;
      selectors |= (set ? rank * 0x22 + 0x10 : 0x76) << 8 * i;
      rank += set ? 1 : 0;
    }
    return {selectors, bits == 15 ? ~0u : 0xffff, rank < 2 ? rank * 16 : 32, rank < 2 ? 0 : (rank - 2) * 16};
  }
};
template <>
struct Spread<4> {
  __device__ static Spread of(uint32_t) { return {}; }
};
template <uint32_t kElement>
__device__ void fill_spread(Spread<kElement> (&spread)[16]) {
  if (threadIdx.x < 16) spread[threadIdx.x] = Spread<kElement>::of(threadIdx.x);
}

// The values of a unit, as aligned words and the offset of the first value in them.
struct Values {
  const std::byte* words;
  uint32_t skew;
  __device__ static Values at(const std::byte* first) {
    const auto skew = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(first) % 4);
    return {first - skew, skew};
  }
};

// Loads `bytes` bytes from byte `at` of the values as words. Reads only words that contain some of them; the
// bytes behind them in the last word may be anything.
template <int kWords>
__device__ void load_unaligned(const Values& values, uint32_t at, uint32_t bytes, uint32_t (&words)[kWords]) {
  const uint32_t begin = values.skew + at, end = begin % 4 + bytes;
  const std::byte* const from = values.words + (begin & ~3u);
  uint32_t read[kWords + 1];
  read[0] = load_word_if(from, bytes != 0);
#pragma unroll
  for (uint32_t i = 1; i <= kWords; ++i) read[i] = load_word_if(from + 4 * i, 4 * i < end);
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = __funnelshift_r(read[i], read[i + 1], 8 * begin);
}

// Expands 4 kWords elements of one byte; `zeros`: four zero elements.
template <int kWords>
__device__ void expand_bytes(const Spread<1> (&spread)[16], uint32_t mask, const Values& values, uint32_t at,
                             uint32_t zeros, uint32_t (&out)[kWords]) {
  uint32_t words[kWords];
  load_unaligned(values, at, __popc(mask), words);
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    const uint32_t selector = spread[mask >> 4 * i & 15].selector;
    out[i] = permute(words[0], zeros, selector);
#pragma unroll
    for (int k = 0; k + 1 + i < kWords; ++k)
      words[k] = __funnelshift_rc(words[k], words[k + 1], selector >> 16);
  }
}

// Expands 16 dense bytes whose values begin at byte `at`: 16, 8 or 4 elements. Wider zeros than a byte are 0.
template <uint32_t kElement>
__device__ uint4 expand16(const Spread<kElement> (&spread)[16], uint32_t mask, const Values& values,
                          uint32_t at, uint32_t zeros) {
  uint32_t out[4];
  if constexpr (kElement == 1) {
    expand_bytes(spread, mask, values, at, zeros, out);
  } else if constexpr (kElement == 2) {
    uint32_t words[4];
    load_unaligned(values, at, 2 * __popc(mask), words);
    const Spread<2> low = spread[mask & 15], high = spread[mask >> 4];
    out[0] = permute(words[0], words[1] & low.fourth, low.selectors);
    out[1] = permute(words[0], words[1] & low.fourth, low.selectors >> 16);
#pragma unroll
    for (int i = 0; i < 3; ++i) words[i] = __funnelshift_rc(words[i], words[i + 1], low.once);
#pragma unroll
    for (int i = 0; i < 2; ++i) words[i] = __funnelshift_rc(words[i], words[i + 1], low.twice);
    out[2] = permute(words[0], words[1] & high.fourth, high.selectors);
    out[3] = permute(words[0], words[1] & high.fourth, high.selectors >> 16);
  } else {
    uint32_t words[4];
    load_unaligned(values, at, 4 * __popc(mask), words);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool set = (mask >> i & 1) != 0;
      out[i] = set ? words[0] : 0;
#pragma unroll
      for (int k = 0; k + 1 < 4 - i; ++k) words[k] = set ? words[k + 1] : words[k];
    }
  }
  return {out[0], out[1], out[2], out[3]};
}

}  // namespace tierd::cuda
