// How fast the kernels of tiers/compute multiply on this machine.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/layout/encoding.h"

namespace tierd {

struct KernelPoint {
  Encoding encoding = Encoding::f32;
  bool int8_activations = false;  // else f32
  double gemv = 0;                // one token: bytes of weights per second, from memory
  double gemm = 0;                // many tokens: multiply-adds per second
};

// Each encoding with the best kernels of this processor on `threads` threads, each rate for `seconds`.
// Errors: no_space, when memory or threads are not to be had.
Result<std::vector<KernelPoint>> measure_kernels(uint32_t threads, double seconds);

}  // namespace tierd
