// The functions of core/model/activation.h on the device.
#pragma once

#include <cuda_runtime.h>

#include "core/model/activation.h"

namespace tierd::cuda {

__device__ inline float activated(Activation f, float threshold, float x) {
  switch (f) {
    case Activation::silu:
      return x / (1.0F + expf(-x));
    case Activation::relu:
      return x > threshold ? x : 0.0F;
    case Activation::relu_squared:
      return x > 0 ? x * x : 0.0F;
    case Activation::gelu:
      return 0.5F * x * (1.0F + erff(x / 1.41421356F));
    case Activation::gelu_tanh:
      return x / (1.0F + expf(-1.59576912F * (x + 0.044715F * x * x * x)));
    case Activation::swiglu_oai: {
      const float m = fminf(x, threshold);
      return m / (1.0F + expf(-1.702F * m));
    }
  }
  return x;
}

// Returns the activated gate times what the up projection becomes.
__device__ inline float gated(Activation f, float threshold, float gate, float up) {
  if (f == Activation::swiglu_oai) up = 1.0F + fmaxf(fminf(up, threshold), -threshold);
  return activated(f, threshold, gate) * up;
}

}  // namespace tierd::cuda
