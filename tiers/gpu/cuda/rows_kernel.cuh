// How the lanes of a warp read a row group of each encoding. A *step* is one read of a warp: 16 bytes a lane,
// of four rows (f16 and bf16: eight), so that a warp reads 512 contiguous bytes.
#pragma once

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
struct StepReader;

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

// The layout of a super-block of 16 rows (core/model/layout/k_quants.h, row_group.h): factors first, then
// chunks of 64 bytes, of which a lane reads the 16 bytes of its rows. Run r is 32 columns; lane l has the
// columns 4 (l / 4) … of each run.
template <Encoding E>
struct SuperBlockReader {
  static constexpr int kRows = 4;
  static constexpr int kAhead = 1;
  static constexpr uint32_t kColumns = kSuperBlock;
  static constexpr bool kHasMin = E != Encoding::q6_k;
  static constexpr int kHighChunks = E == Encoding::q4_k   ? 0
                                     : E == Encoding::q5_k ? 1
                                                           : 2;  // chunks of a lane
  static constexpr int kScaleChunks = kHasMin ? 3 : 4;
  static constexpr uint32_t kFirst = kGroupRows * (kHasMin ? 4 : 2);  // bytes before the chunks
  static constexpr uint32_t kScales = kHasMin ? 0 : 48;               // chunks
  static constexpr uint32_t kHigh = kHasMin ? 3 : 32;
  static constexpr uint32_t kLow = E == Encoding::q4_k ? 3 : E == Encoding::q5_k ? 11 : 0;
  struct Packet {
    uint4 low[4];  // each has the nibbles of two runs
    uint4 high[kHighChunks == 0 ? 1 : kHighChunks];
    uint4 scales[kScaleChunks];
    uint2 d;
    uint2 dmin;
    uint32_t column;
  };
  __device__ static Packet load(const std::byte* group, uint32_t step, uint32_t lane, uint32_t) {
    const std::byte* const block = group + step * uint64_t{kGroupRows * block_bytes(E)};
    const std::byte* const chunks = block + kFirst + lane % 4 * 16;
    const uint32_t c = lane / 4;
    Packet packet;
#pragma unroll
    for (int i = 0; i < 4; ++i) packet.low[i] = load_weights16(chunks + (kLow + i * 8 + c) * 64);
#pragma unroll
    for (int i = 0; i < kHighChunks; ++i) packet.high[i] = load_weights16(chunks + (kHigh + i * 8 + c) * 64);
#pragma unroll
    for (int i = 0; i < kScaleChunks; ++i) packet.scales[i] = load_weights16(chunks + (kScales + i) * 64);
    packet.d = load_weights8(block + lane % 4 * 8);
    if (kHasMin) packet.dmin = load_weights8(block + 32 + lane % 4 * 8);
    packet.column = step * kSuperBlock + c * 4;
    return packet;
  }
  // Returns the integers of run `run`, four columns of row r; those of q6_k minus 32.
  __device__ static void quants(const Packet& packet, int run, int r, float* q) {
    uint32_t word;
    if constexpr (kHasMin) {
      word = word_of(packet.low[run / 2], r) >> (run % 2 * 4) & 0x0f0f0f0fu;
      if constexpr (E == Encoding::q5_k) word |= (word_of(packet.high[0], r) >> run & 0x01010101u) << 4;
    } else {
      word = word_of(packet.low[run / 4 * 2 + run % 2], r) >> (run % 4 / 2 * 4) & 0x0f0f0f0fu;
      word |= (word_of(packet.high[run / 4], r) >> (run % 4 * 2) & 0x03030303u) << 4;
    }
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) q[i] = byte_value(word, i, kHasMin ? 0 : 32);
  }
  // Returns scale and minimum of block `run` of row r of q4_k and q5_k: bytes b, b + 4 and b + 8 of 12.
  __device__ static void block_scale(const Packet& packet, int run, int r, float& scale, float& min) {
    const uint32_t shift = run % 4 * 8;
    const uint32_t first = word_of(packet.scales[0], r) >> shift & 0xff;
    const uint32_t second = word_of(packet.scales[1], r) >> shift & 0xff;
    const uint32_t third = word_of(packet.scales[2], r) >> shift & 0xff;
    const uint32_t s = run < 4 ? first & 63 : (third & 15) | first >> 6 << 4;
    const uint32_t m = run < 4 ? second & 63 : third >> 4 | second >> 6 << 4;
    scale = byte_value(s, 0, 0);
    min = byte_value(m, 0, 0);
  }
  // Returns the scale of q6_k, whose blocks are half runs.
  __device__ static float block_step(const Packet& packet, int run, int r, uint32_t lane) {
    const uint32_t bytes = word_of(packet.scales[run / 2], r) >> (run % 2 * 16);
    return byte_value(((lane < 16 ? bytes : bytes >> 8) & 0xff) ^ 0x80, 0, 128);
  }
  template <int T>
  __device__ static void add(const Packet& packet, uint32_t lane, const float* const (&x)[T],
                             float (&sums)[kRows][T]) {
    float d[4], dmin[4];
    unpack_f16_pairs(packet.d.x, packet.d.y, d);
    if constexpr (kHasMin) unpack_f16_pairs(packet.dmin.x, packet.dmin.y, dmin);
#pragma unroll
    for (int run = 0; run < 8; ++run) {
      float4 values[T];
      float whole[T];
#pragma unroll
      for (int t = 0; t < T; ++t) {
        values[t] = load_x4(x[t] + packet.column + run * 32);
        whole[t] = values[t].x + values[t].y + values[t].z + values[t].w;
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        float q[4];
        quants(packet, run, r, q);
        if constexpr (kHasMin) {
          float scale, min;
          block_scale(packet, run, r, scale, min);
          const float step = d[r] * scale, least = dmin[r] * min;
#pragma unroll
          for (int t = 0; t < T; ++t) {
            sums[r][t] = __fmaf_rn(step, fma4(q, values[t], 0.0F), sums[r][t]);
            sums[r][t] = __fmaf_rn(-least, whole[t], sums[r][t]);
          }
        } else {
          const float step = d[r] * block_step(packet, run, r, lane);
#pragma unroll
          for (int t = 0; t < T; ++t) sums[r][t] = __fmaf_rn(step, fma4(q, values[t], 0.0F), sums[r][t]);
        }
      }
    }
  }
};
template <>
struct StepReader<Encoding::q4_k> : SuperBlockReader<Encoding::q4_k> {};
template <>
struct StepReader<Encoding::q5_k> : SuperBlockReader<Encoding::q5_k> {};
template <>
struct StepReader<Encoding::q6_k> : SuperBlockReader<Encoding::q6_k> {};

}  // namespace tierd::cuda
