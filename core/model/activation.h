// The activation functions of a feed-forward network.
#pragma once

#include <cstdint>

#include "core/base/enum_names.h"

namespace tierd {

enum class Activation : uint8_t {
  silu,          // x * sigmoid(x)
  relu,          // x where x > threshold, else 0; a threshold above 0 is FATReLU
  relu_squared,  // max(0, x)^2
  gelu,          // x/2 * (1 + erf(x / sqrt 2))
  gelu_tanh,     // its approximation, "gelu_new": x * sigmoid(2 * sqrt(2/pi) * (x + 0.044715 x^3))
};
constexpr std::array<std::string_view, 5> names_of(Activation) {
  return {"silu", "relu", "relu_squared", "gelu", "gelu_tanh"};
}

}  // namespace tierd
