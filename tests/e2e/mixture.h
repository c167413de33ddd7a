// Toy mixtures. Nearly all of their weights are in experts.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tools/lab/safetensors/safetensors_writer.h"
#include "tools/lab/synth/synthetic_source.h"

namespace tierd {

inline constexpr uint32_t kMixtureLayers = 3;
inline constexpr uint32_t kMixtureExperts = 24;
inline constexpr uint32_t kMixturePicks = 3;

inline ModelConfig mixture(const std::string& family) {
  ModelConfig c;
  c.architecture = c.name = family;
  c.n_layers = kMixtureLayers;
  c.d_model = 64;
  c.n_heads = 4;
  c.n_kv_heads = 4;
  c.head_dim = 16;
  c.d_ff = 96;
  c.n_experts = kMixtureExperts;
  c.experts_per_token = kMixturePicks;
  c.vocab_size = 300;
  c.context_length = 64;
  c.expert_weights_sum_to_one = family != "olmoe";
  c.qk_norm = family != "mixtral";
  c.qk_norm_wide = family == "olmoe";
  if (family == "olmoe") c.qkv_clip = 0.5f;
  return c;
}

// Writes the routers as `tier-train router` does.
inline void write_routers(const TensorSource& source, const std::string& path) {
  const ModelConfig& config = source.config();
  std::vector<SafetensorsEntry> entries;
  for (uint32_t layer = 0; layer < config.n_layers; ++layer)
    entries.push_back(
        {"layers." + std::to_string(layer) + ".experts.router", "F32", {config.n_experts, config.d_model}});
  auto writer = SafetensorsWriter::create(path, std::move(entries));
  ASSERT_TRUE(writer.ok());
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    const auto router = source.read_f32(*source.find("layers." + std::to_string(layer) + ".router"));
    ASSERT_TRUE(router.ok());
    ASSERT_TRUE(writer->append(std::as_bytes(std::span(*router))).ok());
  }
  ASSERT_TRUE(writer->finish().ok());
}

}  // namespace tierd
