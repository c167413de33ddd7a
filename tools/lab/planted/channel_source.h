// A model without ReLU whose real forward pass uses channels as a text does: random weights of any encoding,
// multiplied row by row and channel by channel. As with SyntheticSource, any range of bytes is made when it
// is read, always the same for a seed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "tools/lab/planted/channel_factors.h"
#include "tools/lab/planted/channel_profile.h"
#include "tools/lab/planted/counter_random.h"
#include "tools/lab/synth/synthetic_source.h"

namespace tierd {

class ChannelSource final : public TensorSource {
 public:
  // Every matrix in `encoding`, vectors in f32. The configuration is `shape` with a head of its own, by which
  // the next token is the next id. Errors: unsupported (a shape that is not that of Llama and its mixtures;
  // what SyntheticSource does not support), invalid_argument (a vocabulary too small).
  static Result<std::unique_ptr<ChannelSource>> make(ModelConfig shape, const ChannelProfile& profile,
                                                     Encoding encoding, uint64_t seed);

  const ModelConfig& config() const override { return random_->config(); }
  const std::vector<TensorInfo>& tensors() const override { return random_->tensors(); }
  const Vocab* vocab() const override { return &vocab_; }
  std::string fingerprint() const override { return fingerprint_; }
  // "planted: activeflow, seed 1": what a store keeps as its source.
  std::string path() const override { return path_; }
  Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override;

  // Returns how often each value of a vector, or what each row of a matrix gives, was planted to be among the
  // larger ones of the operator that takes it. `name`: attn_norm, ffn_norm, v or up of a layer.
  std::vector<float> planted_rates(std::string_view name) const;

 private:
  // By what the random values of a tensor are multiplied.
  struct Content {
    float factor = 1;
    const ChannelFactors* channels = nullptr;  // each row, or of a vector each value, by one of them besides
    RandomKey rates = {};
    bool is_head = false;

    float of(uint64_t channel) const {
      return channels == nullptr ? factor
                                 : factor * channels->of(random_word(rates, static_cast<uint32_t>(channel)));
    }
  };

  ChannelSource() = default;
  void plant(const ChannelProfile& profile);
  Content content_of(std::string_view name) const;
  Status read_head(uint64_t offset, std::span<std::byte> out) const;

  std::unique_ptr<SyntheticSource> random_;
  uint64_t seed_ = 0;
  std::optional<ChannelFactors> normed_;    // of normal values: hidden states, what attention takes
  std::optional<ChannelFactors> products_;  // of silu(gate) * up
  float embed_ = 1, query_ = 1, o_ = 1, down_ = 1;
  std::unordered_map<std::string_view, Content> contents_;  // by the names in tensors()
  Vocab vocab_;
  std::string fingerprint_;
  std::string path_;
};

}  // namespace tierd
