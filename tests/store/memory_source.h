// A small model in memory with random weights in any encoding.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/model/config.h"
#include "core/model/layout/codec.h"
#include "core/model/tensor_source.h"

namespace tierd {

inline ModelConfig small_llama() {
  ModelConfig config;
  config.architecture = "llama";
  config.name = "small";
  config.n_layers = 2;
  config.d_model = 64;
  config.n_heads = 4;
  config.n_kv_heads = 2;
  config.head_dim = 16;
  config.d_ff = 160;
  config.vocab_size = 300;
  config.context_length = 64;
  config.position = PositionKind::rope_interleaved;
  return config;
}

// Heads are 24 wide, so q, k and v do not end at multiples of 16 rows.
inline ModelConfig small_opt() {
  ModelConfig config;
  config.architecture = "opt";
  config.name = "small opt";
  config.n_layers = 2;
  config.d_model = 72;
  config.n_heads = 3;
  config.n_kv_heads = 3;
  config.head_dim = 24;
  config.d_ff = 288;
  config.vocab_size = 301;
  config.context_length = 32;
  config.norm = Norm::layer;
  config.activation = Activation::relu;
  config.gated = false;
  config.position = PositionKind::learned;
  config.position_offset = 2;
  config.qkv_bias = config.o_bias = config.ffn_bias = config.norm_bias = true;
  config.tied_embeddings = true;
  return config;
}

// Returns a mixture of six experts, none of whose matrices has whole row groups.
inline ModelConfig small_mixture() {
  ModelConfig config = small_llama();
  config.architecture = "olmoe";
  config.name = "small mixture";
  config.d_ff = 40;
  config.n_experts = 6;
  config.experts_per_token = 2;
  config.qk_norm = config.qk_norm_wide = true;
  config.qkv_clip = 0.75f;
  return config;
}

inline Vocab small_vocab(uint32_t size) {
  Vocab vocab;
  for (uint32_t i = 0; i < size; ++i) {
    vocab.pieces.push_back("piece" + std::to_string(i));
    vocab.scores.push_back(-0.1f * static_cast<float>(i));
    vocab.types.push_back(i < 3 ? TokenType::control : TokenType::normal);
  }
  vocab.pieces[4] = std::string("\xe2\x96", 2);  // a part of a character
  vocab.pieces[5] = std::string("a\0\"\\\n", 5);
  vocab.unknown = 0;
  vocab.bos = 1;
  vocab.eos = 2;
  vocab.end_tokens = {2, 7};
  return vocab;
}

class MemorySource : public TensorSource {
 public:
  // Matrices have `encoding`, vectors f32; `odd` names tensors with encodings of their own.
  MemorySource(ModelConfig config, Encoding encoding, uint64_t seed = 1,
               std::map<std::string, Encoding> odd = {})
      : config_(std::move(config)), vocab_(small_vocab(config_.vocab_size)) {
    fingerprint_value = "memory seed " + std::to_string(seed);
    Random random(seed);
    for (const TensorSpec& spec : required_tensors(config_)) {
      TensorInfo info;
      info.name = spec.name;
      info.rows = spec.rows;
      info.cols = spec.cols;
      info.encoding = spec.rows == 1 || spec.name == "position" ? Encoding::f32 : encoding;
      if (const auto found = odd.find(spec.name); found != odd.end()) info.encoding = found->second;
      std::vector<float> values(spec.rows * spec.cols);
      for (float& value : values) value = random.symmetric();
      std::vector<std::byte>& bytes = bytes_[spec.name];
      bytes.resize(info.bytes());
      encode(info.encoding, values, bytes);
      tensors_.push_back(std::move(info));
    }
  }

  const ModelConfig& config() const override { return config_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const Vocab* vocab() const override { return &vocab_; }
  std::string fingerprint() const override { return fingerprint_value; }
  std::string path() const override { return "memory"; }
  Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override {
    if (tensor.name == broken_tensor) return Error{Code::io_error, "memory", tensor.name + " cannot be read"};
    const std::vector<std::byte>& bytes = bytes_.at(tensor.name);
    std::memcpy(out.data(), bytes.data() + offset, out.size());
    return {};
  }

  // Changes one value of a tensor whose values do not share bytes.
  void set(const std::string& tensor, uint64_t row, uint64_t col, float value) {
    const TensorInfo& info = *find(tensor);
    const uint64_t at = encoded_bytes(info.encoding, row * info.cols + col);
    encode(info.encoding, {&value, 1}, std::span(bytes_.at(tensor)).subspan(at));
  }

  std::string fingerprint_value;
  std::string broken_tensor;

 private:
  ModelConfig config_;
  Vocab vocab_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::vector<std::byte>> bytes_;
};

}  // namespace tierd
