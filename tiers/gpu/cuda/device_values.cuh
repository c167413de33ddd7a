// Bit operations of one thread. All inline PTX is in this file, each function with a plain twin beside it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/model/layout/codec.h"

namespace tierd::cuda {

inline constexpr uint32_t kWarp = 32;

__device__ inline float f16_value(uint32_t bits) {
#if defined(__CUDACC__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<uint16_t>(bits)));
  return value;
#else
  return f16_to_f32(static_cast<uint16_t>(bits));
#endif
}

__device__ inline uint16_t to_f16(float value) {
#if defined(__CUDACC__)
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  return f32_to_f16(value);
#endif
}

__device__ inline float bf16_value(uint32_t bits) {
  return __uint_as_float(bits << 16);
}

// Rounds to bf16, to nearest even; a NaN stays a NaN.
__device__ inline uint16_t to_bf16(float value) {
  const uint32_t bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}
// Returns, as bf16, the remainder of the value after `high`, its rounding to bf16; both together have 16 of
// its 24 bits. The remainder of an infinite value is 0.
__device__ inline uint16_t rest_of_bf16(float value, uint16_t high) {
  if ((high & 0x7f80) == 0x7f80) return 0;
  return to_bf16(value - bf16_value(high));
}

// Loads 16 (below: 8) bytes of weights. Weights are read once, so the load does not allocate in the L1 cache,
// which keeps the activations. No kernel writes memory that it reads by this load.
__device__ inline uint4 load_weights16(const void* at) {
#if defined(__CUDACC__)
  uint4 words;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
      : "l"(at));
  return words;
#else
  return *static_cast<const uint4*>(at);
#endif
}
__device__ inline uint2 load_weights8(const void* at) {
#if defined(__CUDACC__)
  uint2 words;
  asm("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(words.x), "=r"(words.y) : "l"(at));
  return words;
#else
  return *static_cast<const uint2*>(at);
#endif
}
// Loads 4 bytes of weights if `wanted`, without a branch; else the result is undefined. The L1 cache keeps
// them, because neighbouring lanes read the same words.
__device__ inline uint32_t load_word_if(const void* at, bool wanted) {
#if defined(__CUDACC__)
  uint32_t word;
  asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.nc.u32 %0, [%1]; }"
      : "=r"(word)
      : "l"(at), "r"(static_cast<uint32_t>(wanted)));
  return word;
#else
  return wanted ? *static_cast<const uint32_t*>(at) : 0xa5a5a5a5u;
#endif
}
// Loads 1, 2 or 4 bytes of bits; 0 if not `wanted`.
template <int kBytes>
__device__ uint32_t load_bits_if(const void* at, bool wanted) {
#if defined(__CUDACC__)
  const auto there = static_cast<uint32_t>(wanted);
  uint32_t bits;
  if constexpr (kBytes == 1) {
    asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.nc.u8 %0, [%1]; @!p mov.u32 %0, 0; }"
        : "=r"(bits)
        : "l"(at), "r"(there));
  } else if constexpr (kBytes == 2) {
    asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.nc.u16 %0, [%1]; @!p mov.u32 %0, 0; }"
        : "=r"(bits)
        : "l"(at), "r"(there));
  } else {
    asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.nc.u32 %0, [%1]; @!p mov.u32 %0, 0; }"
        : "=r"(bits)
        : "l"(at), "r"(there));
  }
  return bits;
#else
  if (!wanted) return 0;
  if constexpr (kBytes == 1) return *static_cast<const uint8_t*>(at);
  if constexpr (kBytes == 2) return *static_cast<const uint16_t*>(at);
  return *static_cast<const uint32_t*>(at);
#endif
}
__device__ inline uint32_t load_u16(const void* at) {
  return *static_cast<const uint16_t*>(at);
}

// Byte i of the result is the byte of `low` and `high` (numbers 0 to 7) that nibble i of the selector names.
// Nibbles are below 8; bits of the selector above the fourth nibble are ignored.
__device__ inline uint32_t permute(uint32_t low, uint32_t high, uint32_t selector) {
#if defined(__CUDACC__)
  uint32_t word;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(low), "r"(high), "r"(selector));
  return word;
#else
  return __byte_perm(low, high, selector);
#endif
}

// Returns byte i of a word minus `offset`, exactly, as a float. The bits of 2^23 + byte are assembled,
// because a GPU converts integers at a quarter of the rate at which it adds.
__device__ inline float byte_value(uint32_t word, uint32_t i, float offset) {
  return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7650u + i)) - (8388608.0F + offset);
}

}  // namespace tierd::cuda
