// Replaces the CUDA runtime's header where tests compile sources of tiers/gpu/cuda with g++: the language's
// keywords and the calls that these sources use, on an emulated device (double.h). It declares nothing else,
// so a new call fails to compile.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/gpu/cuda_on_host/fibers.h"

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
// Blocks run one after the other on one thread.
#define __shared__ static

struct uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

inline void __syncthreads() {
  on_host::wait_for_block();
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, unsigned lanes) {
  return on_host::exchange(mask, value, lanes);
}
inline float __fmaf_rn(float a, float b, float c) {
  return std::fma(a, b, c);
}
inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}
inline unsigned __float_as_uint(float value) {
  return std::bit_cast<unsigned>(value);
}
// Byte i of the result is byte s_i of the eight in `high` and `low`; s_i is nibble i of the selector.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const uint64_t bytes = uint64_t{high} << 32 | low;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i)
    result |= static_cast<unsigned>(bytes >> (selector >> (4 * i) & 7) * 8 & 0xff) << 8 * i;
  return result;
}
inline unsigned __popc(unsigned bits) {
  return static_cast<unsigned>(std::popcount(bits));
}
// Returns the low word of high:low shifted right, by the lowest five bits of `n`, or (rc) by at most 32.
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned n) {
  return static_cast<unsigned>((uint64_t{high} << 32 | low) >> (n & 31));
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned n) {
  return static_cast<unsigned>((uint64_t{high} << 32 | low) >> (n < 32 ? n : 32));
}
inline unsigned min(unsigned a, unsigned b) {
  return a < b ? a : b;
}
using std::isnan;

#include "tests/gpu/cuda_on_host/double.h"
