// The functions of a feed-forward network: of its neurons, and of a router that chooses among networks.
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
  // With a threshold t: m * sigmoid(1.702 m) with m = min(x, t), times 1 + the up projection cut off at t to
  // either side, in place of the up projection (gpt-oss).
  swiglu_oai,
};
constexpr std::array<std::string_view, 6> names_of(Activation) {
  return {"silu", "relu", "relu_squared", "gelu", "gelu_tanh", "swiglu_oai"};
}
constexpr bool has_threshold(Activation activation) {
  return activation == Activation::relu || activation == Activation::swiglu_oai;
}

// The scores that a router's products become before experts are chosen.
enum class RouterScore : uint8_t {
  softmax,  // probabilities of all experts, which add up to one
  sigmoid,  // 1 / (1 + e^-x), each by itself
};
constexpr std::array<std::string_view, 2> names_of(RouterScore) {
  return {"softmax", "sigmoid"};
}

}  // namespace tierd
