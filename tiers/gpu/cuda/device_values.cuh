// What one thread does with bits: inline PTX stands here alone, each function with a plain twin beside it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/layout/codec.h"

namespace tierd::cuda {

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

// 16 and 8 bytes of weights, which are read once: they are not kept in the first cache, where the activations
// are. No kernel writes what it reads so.
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
__device__ inline uint32_t load_u16(const void* at) {
  return *static_cast<const uint16_t*>(at);
}

// Byte i of a word minus `offset`, exactly, as a float: 2^23 + byte is put together from bits, since a GPU
// converts integers at a quarter of the rate at which it adds.
__device__ inline float byte_value(uint32_t word, uint32_t i, float offset) {
  return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7650u + i)) - (8388608.0F + offset);
}

}  // namespace tierd::cuda
