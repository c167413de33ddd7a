// Builds safetensors files and whole Hugging Face folders, valid and invalid.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/base/temp_folder.h"

namespace tierd {

// Returns a file with any `header`, prefixed with its length, and `data`.
inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  const uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes.append(header).append(data);
}

struct SafetensorsBuilder {
  nlohmann::json header = nlohmann::json::object();
  std::string data;

  void add(const std::string& name, const std::string& dtype, const std::vector<uint64_t>& shape,
           std::string_view bytes) {
    const size_t begin = data.size();
    data.append(bytes);
    header[name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
  }
  void add_f32(const std::string& name, const std::vector<uint64_t>& shape, float value) {
    uint64_t count = 1;
    for (const uint64_t extent : shape) count *= extent;
    std::string values;
    for (uint64_t i = 0; i < count; ++i) values.append(reinterpret_cast<const char*>(&value), sizeof value);
    add(name, "F32", shape, values);
  }
  std::string bytes() const { return safetensors_bytes(header.dump(), data); }
};

// One layer of width 32, 2 heads, feed-forward 64, 8 tokens.
struct TinyHfModel {
  nlohmann::json config = {
      {"model_type", "llama"},    {"hidden_size", 32},         {"intermediate_size", 64},
      {"num_hidden_layers", 1},   {"num_attention_heads", 2},  {"max_position_embeddings", 16},
      {"vocab_size", 8},          {"rms_norm_eps", 1e-5},      {"rope_theta", 10000.0},
      {"hidden_act", "silu"},     {"attention_bias", false},   {"tie_word_embeddings", true},
      {"torch_dtype", "float32"}, {"transformers_version", ""}};
  SafetensorsBuilder weights;

  explicit TinyHfModel(const std::string& prefix = "model.") {
    weights.header["__metadata__"] = {{"format", "pt"}};
    weights.add_f32(prefix + "embed_tokens.weight", {8, 32}, 0.5f);
    weights.add_f32(prefix + "norm.weight", {32}, 1.0f);
    const std::string layer = prefix + "layers.0.";
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      weights.add_f32(layer + "self_attn." + name + ".weight", {32, 32}, 0.01f);
    }
    weights.add_f32(layer + "mlp.gate_proj.weight", {64, 32}, 0.01f);
    weights.add_f32(layer + "mlp.up_proj.weight", {64, 32}, 0.01f);
    weights.add_f32(layer + "mlp.down_proj.weight", {32, 64}, 0.02f);
    weights.add_f32(layer + "input_layernorm.weight", {32}, 1.0f);
    weights.add_f32(layer + "post_attention_layernorm.weight", {32}, 1.0f);
  }

  void write(const TempFolder& folder) const {
    folder.write("config.json", config.dump(1));
    folder.write("model.safetensors", weights.bytes());
  }
};

}  // namespace tierd
