// A planted model small enough for a test and wide enough for statistics. A layer's mean activity depends on
// the number of its neurons, so it has more for its width than OPT.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "tools/lab/planted/planted_source.h"

namespace tierd {

inline ModelConfig small_planted_shape() {
  ModelConfig config;
  config.architecture = "opt";
  config.name = "small planted";
  config.n_layers = 4;
  config.d_model = 512;
  config.n_heads = 4;
  config.n_kv_heads = 4;
  config.head_dim = 128;
  config.d_ff = 8192;
  config.vocab_size = 259 + 4 * 1024;
  config.context_length = 96;
  config.norm = Norm::layer;
  config.norm_bias = true;
  config.activation = Activation::relu;
  config.gated = false;
  config.ffn_bias = true;
  config.position = PositionKind::learned;
  config.position_offset = 2;
  return config;
}

inline PlantedProfile flash_profile() {
  auto profile = read_planted_profile("flash");
  EXPECT_TRUE(profile.ok()) << profile.error().line();
  return *profile;
}

// Returns a model whose width, neurons and vocabulary are multiples of nothing.
inline ModelConfig odd_planted_shape() {
  ModelConfig config = small_planted_shape();
  config.name = "odd planted";
  config.n_layers = 3;
  config.d_model = 72;
  config.n_heads = config.n_kv_heads = 3;
  config.head_dim = 24;
  config.d_ff = 301;
  config.vocab_size = 333;
  config.context_length = 16;
  return config;
}

inline std::unique_ptr<PlantedSource> make_planted(const ModelConfig& shape,
                                                   Encoding encoding = Encoding::f16, uint64_t seed = 1) {
  auto source = PlantedSource::make(shape, flash_profile(), encoding, seed);
  EXPECT_TRUE(source.ok()) << source.error().line();
  return std::move(*source);
}

}  // namespace tierd
