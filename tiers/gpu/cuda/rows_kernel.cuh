// How the lanes of a warp read a row group of each encoding. A *step* is one read of a warp: 16 bytes a lane,
// of four rows (f16 and bf16: eight), so that a warp reads 512 contiguous bytes.
#pragma once

#include "core/model/layout/block_layout.h"
#include "core/model/layout/row_group.h"
#include "tiers/gpu/cuda/device_values.cuh"

namespace tierd::cuda {

__device__ inline float4 load_x4(const float* x) {
  return *reinterpret_cast<const float4*>(x);
}
// Returns p plus the four products, each fused, in order.
__device__ inline float fma4(const float* v, const float4& x, float p) {
  return __fmaf_rn(v[3], x.w, __fmaf_rn(v[2], x.z, __fmaf_rn(v[1], x.y, __fmaf_rn(v[0], x.x, p))));
}
__device__ inline void unpack_f16_pairs(uint32_t low, uint32_t high, float* out) {
  out[0] = f16_value(low & 0xffff);
  out[1] = f16_value(low >> 16);
  out[2] = f16_value(high & 0xffff);
  out[3] = f16_value(high >> 16);
}
__device__ inline uint32_t word_of(const uint4& words, int i) {
  return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

template <Encoding E>
struct StepReader;  // of an encoding

// A lane has one column of 8 rows.
template <Encoding E>
struct HalvesReader {
  static constexpr int kRows = 8;
  static constexpr int kAhead = 8;
  static constexpr uint32_t kColumns = 16;  // of a step
  struct Packet {
    uint4 words;
    uint32_t column;
    bool there;
  };
  __device__ static Packet load(const std::byte* group, uint32_t step, uint32_t lane, uint32_t n_in) {
    Packet packet;
    packet.column = step * kColumns + lane / 2;
    packet.there = packet.column < n_in;
    if (packet.there) packet.words = load_weights16(group + packet.column * 32ull + lane % 2 * 16);
    return packet;
  }
  template <int T>
  __device__ static void add(const Packet& packet, uint32_t, const float* const (&x)[T],
                             float (&sums)[kRows][T]) {
    if (!packet.there) return;
    float w[kRows];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t pair = word_of(packet.words, i);
      w[2 * i] = E == Encoding::f16 ? f16_value(pair & 0xffff) : bf16_value(pair & 0xffff);
      w[2 * i + 1] = E == Encoding::f16 ? f16_value(pair >> 16) : bf16_value(pair >> 16);
    }
#pragma unroll
    for (int t = 0; t < T; ++t) {
      const float value = x[t][packet.column];
#pragma unroll
      for (int r = 0; r < kRows; ++r) sums[r][t] = __fmaf_rn(w[r], value, sums[r][t]);
    }
  }
};
template <>
struct StepReader<Encoding::f16> : HalvesReader<Encoding::f16> {};
template <>
struct StepReader<Encoding::bf16> : HalvesReader<Encoding::bf16> {};

// A lane has one column of 4 rows.
template <>
struct StepReader<Encoding::f32> {
  static constexpr int kRows = 4;
  static constexpr int kAhead = 8;
  static constexpr uint32_t kColumns = 8;
  struct Packet {
    uint4 words;
    uint32_t column;
    bool there;
  };
  __device__ static Packet load(const std::byte* group, uint32_t step, uint32_t lane, uint32_t n_in) {
    Packet packet;
    packet.column = step * kColumns + lane / 4;
    packet.there = packet.column < n_in;
    if (packet.there) packet.words = load_weights16(group + packet.column * 64ull + lane % 4 * 16);
    return packet;
  }
  template <int T>
  __device__ static void add(const Packet& packet, uint32_t, const float* const (&x)[T],
                             float (&sums)[kRows][T]) {
    if (!packet.there) return;
#pragma unroll
    for (int t = 0; t < T; ++t) {
      const float value = x[t][packet.column];
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        sums[r][t] = __fmaf_rn(__uint_as_float(word_of(packet.words, r)), value, sums[r][t]);
    }
  }
};

// A step is a block of 32 columns; a lane has four of them, of 4 rows.
template <>
struct StepReader<Encoding::q8_0> {
  static constexpr int kRows = 4;
  static constexpr int kAhead = 4;
  static constexpr uint32_t kColumns = kQuantBlock;
  struct Packet {
    uint4 words;
    uint2 scales;
    uint32_t column;
  };
  __device__ static Packet load(const std::byte* group, uint32_t step, uint32_t lane, uint32_t) {
    const std::byte* const block = group + step * uint64_t{kGroupRows * block_bytes(Encoding::q8_0)};
    return {load_weights16(block + 32 + lane * 16), load_weights8(block + lane % 4 * 8),
            step * kQuantBlock + lane / 4 * 4};
  }
  template <int T>
  __device__ static void add(const Packet& packet, uint32_t, const float* const (&x)[T],
                             float (&sums)[kRows][T]) {
    float scale[4];
    unpack_f16_pairs(packet.scales.x, packet.scales.y, scale);
    float4 values[T];
#pragma unroll
    for (int t = 0; t < T; ++t) values[t] = load_x4(x[t] + packet.column);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float q[4];
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) q[i] = byte_value(word_of(packet.words, r), i, 128);
#pragma unroll
      for (int t = 0; t < T; ++t) sums[r][t] = __fmaf_rn(scale[r], fma4(q, values[t], 0.0F), sums[r][t]);
    }
  }
};

// A step is two blocks of 32 columns; a lane has four columns and the four 16 columns further on, of 4 rows.
template <>
struct StepReader<Encoding::q4_0> {
  static constexpr int kRows = 4;
  static constexpr int kAhead = 4;
  static constexpr uint32_t kColumns = 2 * kQuantBlock;
  struct Packet {
    uint4 words;
    uint2 scales;
    uint32_t column;
    bool there;
  };
  __device__ static Packet load(const std::byte* group, uint32_t step, uint32_t lane, uint32_t n_in) {
    const uint32_t number = step * 2 + lane / 16;
    Packet packet;
    packet.column = number * kQuantBlock + lane / 4 % 4 * 4;
    packet.there = packet.column < n_in;
    if (!packet.there) return packet;
    const std::byte* const block = group + number * uint64_t{kGroupRows * block_bytes(Encoding::q4_0)};
    packet.words = load_weights16(block + 32 + lane % 16 * 16);
    packet.scales = load_weights8(block + lane % 4 * 8);
    return packet;
  }
  template <int T>
  __device__ static void add(const Packet& packet, uint32_t, const float* const (&x)[T],
                             float (&sums)[kRows][T]) {
    if (!packet.there) return;
    float scale[4];
    unpack_f16_pairs(packet.scales.x, packet.scales.y, scale);
    float4 low[T], high[T];
#pragma unroll
    for (int t = 0; t < T; ++t) {
      low[t] = load_x4(x[t] + packet.column);
      high[t] = load_x4(x[t] + packet.column + 16);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const uint32_t word = word_of(packet.words, r);
      float a[4], b[4];
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        a[i] = byte_value(word & 0x0f0f0f0fu, i, 8);
        b[i] = byte_value(word >> 4 & 0x0f0f0f0fu, i, 8);
      }
#pragma unroll
      for (int t = 0; t < T; ++t)
        sums[r][t] = __fmaf_rn(scale[r], fma4(b, high[t], fma4(a, low[t], 0.0F)), sums[r][t]);
    }
  }
};

// A step is a block of any other encoding (core/model/layout/block_layout.h); lane l has the columns
// 4 (l / 4) … of each run, of 4 rows: the 16 bytes of those rows in each word.
template <Encoding E>
struct BlockReader {
  static constexpr int kRows = 4;
  static constexpr int kAhead = runs_of(E) == 1 ? 4 : 1;
  static constexpr uint32_t kColumns = block_values(E);
  static constexpr uint32_t kRuns = runs_of(E);
  static constexpr uint32_t kHalves = kQuantBlock / scaled_values(E);  // of a run, with steps of their own
  static constexpr bool kHasSecond = factor_bytes(E) == 4;
  static constexpr WordRange kScaleWords = scale_words(E);

  // Runs that share the words of their low or high bits have them in one slot of a packet.
  __device__ static constexpr uint32_t low_slot(uint32_t run) {
    if (E == Encoding::q6_k) return run / 4 * 2 + run % 2;
    if (E == Encoding::q2_k || E == Encoding::q3_k) return run / 4;
    return E == Encoding::q4_k || E == Encoding::q5_k ? run / 2 : run;
  }
  __device__ static constexpr uint32_t high_slot(uint32_t run) { return E == Encoding::q6_k ? run / 4 : 0; }
  __device__ static constexpr bool is_first_of_low(uint32_t run) {
    for (uint32_t r = 0; r < run; ++r) {
      if (low_slot(r) == low_slot(run)) return false;
    }
    return true;
  }
  static constexpr uint32_t kLowSlots = low_slot(kRuns - 1) + 1;
  static constexpr uint32_t kHighSlots = high_slot(kRuns - 1) + 1;

  struct Packet {
    uint4 low[kLowSlots];
    uint4 high[kHighSlots];
    uint4 scales[has_scales(E) ? kScaleWords.count : 1];
    uint2 d;  // mxfp4: the exponents, in x
    uint2 second;
    uint32_t column;
  };
  __device__ static Packet load(const std::byte* group, uint32_t step, uint32_t lane, uint32_t) {
    const std::byte* const block = group + step * uint64_t{kGroupRows * block_bytes(E)};
    const std::byte* const words = block + kGroupRows * factor_bytes(E) + lane % 4 * 16;
    const uint32_t four = lane / 4;
    Packet packet;
#pragma unroll
    for (uint32_t run = 0; run < kRuns; ++run) {
      if (is_first_of_low(run))
        packet.low[low_slot(run)] = load_weights16(words + low_bits(E, run, four).word * 64);
    }
    if constexpr (high_width(E) != 0) {
#pragma unroll
      for (uint32_t i = 0; i < kHighSlots; ++i)  // four runs share a slot, or all
        packet.high[i] = load_weights16(words + high_bits(E, i * 4, four).word * 64);
    }
    if constexpr (has_scales(E)) {
#pragma unroll
      for (uint32_t i = 0; i < kScaleWords.count; ++i)
        packet.scales[i] = load_weights16(words + (kScaleWords.first + i) * 64);
    }
    if constexpr (E == Encoding::mxfp4) {
      packet.d.x = *reinterpret_cast<const uint32_t*>(block + lane % 4 * 4);
    } else {
      packet.d = load_weights8(block + lane % 4 * 8);
    }
    if constexpr (kHasSecond) packet.second = load_weights8(block + kGroupRows * 2 + lane % 4 * 8);
    packet.column = step * kColumns + four * 4;
    return packet;
  }

  // Returns the entries of codes, a byte each. permute() looks up 4 of 8 bytes.
  __device__ static uint32_t looked_up(uint32_t codes) {
    const uint32_t selector =
        (codes & 7) | (codes >> 4 & 0x70) | (codes >> 8 & 0x700) | (codes >> 12 & 0x7000);
    const uint32_t low = permute(entries(0), entries(4), selector);
    const uint32_t high = permute(entries(8), entries(12), selector);
    const uint32_t is_high = (codes >> 3 & 0x01010101u) * 255;
    return (low & ~is_high) | (high & is_high);
  }
  __device__ static constexpr uint32_t entries(uint32_t first) {
    uint32_t word = 0;
    for (uint32_t i = 0; i < 4; ++i) word |= uint32_t{code_entries(E)[first + i]} << 8 * i;
    return word;
  }

  // Returns the integers of a run's four columns of row r.
  __device__ static void quants(const Packet& packet, uint32_t run, int r, uint32_t lane, float* q) {
    constexpr uint32_t kBytes = 0x01010101u;
    const uint32_t four = lane / 4;
    uint32_t codes = word_of(packet.low[low_slot(run)], r) >> low_bits(E, run, four).shift &
                     ((1u << low_width(E)) - 1) * kBytes;
    if constexpr (high_width(E) != 0) {
      const uint32_t high = word_of(packet.high[high_slot(run)], r) >> high_bits(E, run, four).shift;
      codes |= (high & ((1u << high_width(E)) - 1) * kBytes) << low_width(E);
    }
    if constexpr (has_table(E)) codes = looked_up(codes);
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) q[i] = byte_value(codes, i, code_offset(E));
  }

  // Returns the 16 bits of row r.
  __device__ static uint32_t half_of(const uint2& pairs, int r) {
    return (r < 2 ? pairs.x : pairs.y) >> (r % 2 * 16) & 0xffff;
  }
  __device__ static uint32_t field(const Packet& packet, int r, const Bits& at, uint32_t shift,
                                   uint32_t width) {
    const uint32_t word = at.word == kSecondFactor ? half_of(packet.second, r)
                                                   : word_of(packet.scales[at.word - kScaleWords.first], r);
    return word >> shift & ((1u << width) - 1);
  }
  // `first` and `last` describe an integer of the first 16 columns of a run and of the others, in the same
  // words.
  __device__ static float integer(const Packet& packet, int r, uint32_t lane, const ScaleBits& first,
                                  const ScaleBits& last) {
    const bool is_last = kHalves == 2 && lane >= 16;
    uint32_t value = field(packet, r, first.low, is_last ? last.low.shift : first.low.shift, first.low_width);
    if (first.high_width != 0) {
      const uint32_t shift = is_last ? last.high.shift : first.high.shift;
      value |= field(packet, r, first.high, shift, first.high_width) << first.low_width;
    }
    return byte_value(value ^ first.flip, 0, static_cast<float>(first.offset));
  }
  // Returns the step and the minimum of the lane's columns of a run.
  __device__ static void steps(const Packet& packet, uint32_t run, int r, uint32_t lane, float& step,
                               float& min) {
    if constexpr (E == Encoding::mxfp4) {
      const uint32_t exponent = packet.d.x >> 8 * r & 255;
      step = __uint_as_float(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
    } else {
      step = f16_value(half_of(packet.d, r));
    }
    min = 0;
    if constexpr (has_min(E)) min = f16_value(half_of(packet.second, r));
    if constexpr (has_scales(E)) {
      const uint32_t i = run * kHalves, last = i + kHalves - 1;
      step *= integer(packet, r, lane, scale_bits(E, i), scale_bits(E, last));
      if constexpr (has_min(E)) min *= integer(packet, r, lane, min_bits(E, i), min_bits(E, last));
    } else {
      min = -min;
    }
  }

  template <int T>
  __device__ static void add(const Packet& packet, uint32_t lane, const float* const (&x)[T],
                             float (&sums)[kRows][T]) {
#pragma unroll
    for (uint32_t run = 0; run < kRuns; ++run) {
      float4 values[T];
      float whole[T];
#pragma unroll
      for (int t = 0; t < T; ++t) {
        values[t] = load_x4(x[t] + packet.column + run * kQuantBlock);
        whole[t] = values[t].x + values[t].y + values[t].z + values[t].w;
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        float q[4], step, min;
        quants(packet, run, r, lane, q);
        steps(packet, run, r, lane, step, min);
#pragma unroll
        for (int t = 0; t < T; ++t) {
          sums[r][t] = __fmaf_rn(step, fma4(q, values[t], 0.0F), sums[r][t]);
          if constexpr (has_min(E)) sums[r][t] = __fmaf_rn(-min, whole[t], sums[r][t]);
        }
      }
    }
  }
};
template <Encoding E>
struct StepReader : BlockReader<E> {};

}  // namespace tierd::cuda
