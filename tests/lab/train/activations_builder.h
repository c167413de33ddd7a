// Files of activations, sound and unsound.
#pragma once

#include <string>
#include <vector>

#include "core/model/config.h"
#include "core/model/layout/codec.h"
#include "tests/formats/safetensors_builder.h"

namespace tierd {

inline std::string f16_bytes(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    const uint16_t half = f32_to_f16(value);
    bytes.append(reinterpret_cast<const char*>(&half), sizeof half);
  }
  return bytes;
}

inline std::string f32_bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// Returns the configuration of a model of one layer, as far as Activations reads it.
inline ModelConfig one_layer(uint32_t d_model, uint32_t d_ff) {
  ModelConfig config;
  config.n_layers = 1;
  config.d_model = d_model;
  config.d_ff = d_ff;
  return config;
}

}  // namespace tierd
