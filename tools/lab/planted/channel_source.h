// A model without ReLU whose real forward pass uses channels as a text does: random weights of any encoding,
// multiplied row by row and channel by channel. As with SyntheticSource, any range of bytes is made when it
// is read, and depends on the seed alone.
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
  // Every matrix is in `encoding`, vectors in f32. The configuration is `shape` with a separate head, whose
  // next token is the next id. Errors: unsupported (a shape other than Llama's and its mixtures'; shapes that
  // SyntheticSource does not support), invalid_argument (a vocabulary too small).
  static Result<std::unique_ptr<ChannelSource>> make(ModelConfig shape, const ChannelProfile& profile,
                                                     Encoding encoding, uint64_t seed);

  const ModelConfig& config() const override { return random_->config(); }
  const std::vector<TensorInfo>& tensors() const override { return random_->tensors(); }
  const Vocab* vocab() const override { return &vocab_; }
  std::string fingerprint() const override { return fingerprint_; }
  // "planted: activeflow, seed 1": the source in the store's manifest.
  std::string path() const override { return path_; }
  Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override;

  // Returns the planted rate of each value of a vector, or of each output row of a matrix: how often it is
  // among the larger inputs of the next operator. `name`: attn_norm, ffn_norm, v or up of a layer.
  std::vector<float> planted_rates(std::string_view name) const;

 private:
  // The factors of a tensor's random values.
  struct Content {
    float factor = 1;
    const ChannelFactors* channels = nullptr;  // additional factor of each row, or of each value of a vector
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
  std::optional<ChannelFactors> normed_;    // for normal values: hidden states and attention's values
  std::optional<ChannelFactors> products_;  // for silu(gate) * up
  float embed_ = 1, query_ = 1, o_ = 1, down_ = 1;
  std::unordered_map<std::string_view, Content> contents_;  // by the names in tensors()
  Vocab vocab_;
  std::string fingerprint_;
  std::string path_;
};

}  // namespace tierd
