// Builds Hugging Face folders of mixtures of every family, with two experts each.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/formats/safetensors_builder.h"

namespace tierd {

// Returns a tiny Llama whose network is a mixture of two experts of width 8.
inline TinyHfModel tiny_mixture(const std::string& family, const nlohmann::json& changes) {
  TinyHfModel model;
  model.config["model_type"] = family;
  model.config.update(changes);
  const bool mixtral = family == "mixtral";
  const std::string layer = "model.layers.0.", mlp = layer + (mixtral ? "block_sparse_moe." : "mlp.");
  model.weights = {};
  model.weights.add_f32("model.embed_tokens.weight", {8, 32}, 0.5f);
  model.weights.add_f32("model.norm.weight", {32}, 1.0f);
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    model.weights.add_f32(layer + "self_attn." + name + ".weight", {32, 32}, 0.01f);
  for (const char* name : {"input_layernorm", "post_attention_layernorm"})
    model.weights.add_f32(layer + name + ".weight", {32}, 1.0f);
  model.weights.add_f32(mlp + "gate.weight", {2, 32}, 0.5f);
  for (uint32_t e = 0; e < 2; ++e) {
    const auto value = static_cast<float>(e);
    const std::string expert = mlp + "experts." + std::to_string(e) + ".";
    model.weights.add_f32(expert + (mixtral ? "w1" : "gate_proj") + ".weight", {8, 32}, 1 + value);
    model.weights.add_f32(expert + (mixtral ? "w3" : "up_proj") + ".weight", {8, 32}, 3 + value);
    model.weights.add_f32(expert + (mixtral ? "w2" : "down_proj") + ".weight", {32, 8}, 5 + value);
  }
  if (mixtral) return model;
  const uint64_t normed = family == "olmoe" ? 32 : 16;
  for (const char* name : {"q_norm", "k_norm"})
    model.weights.add_f32(layer + "self_attn." + name + ".weight", {normed}, 1.0f);
  return model;
}

inline const nlohmann::json kMixtral = {
    {"num_local_experts", 2}, {"num_experts_per_tok", 1}, {"intermediate_size", 8}};
inline const nlohmann::json kQwen3Moe = {
    {"num_experts", 2}, {"num_experts_per_tok", 1}, {"moe_intermediate_size", 8}};
inline const nlohmann::json kOlmoe = {
    {"num_experts", 2}, {"num_experts_per_tok", 1}, {"intermediate_size", 8}};

}  // namespace tierd
