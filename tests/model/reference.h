// The model in its plainest form: f32 weights, one token at a time, loops in the order of the formulas. Every
// faster path is compared with it, so it is written to be read, not to be fast.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/model/config.h"
#include "core/model/tensor_source.h"

namespace tierd {

class Reference {
 public:
  // Reads and dequantizes all weights: 4 bytes a parameter. `context`: the positions of the run; 0: as many
  // as the model has. Errors: those of TensorSource::read.
  static Result<Reference> load(const TensorSource& source, uint32_t context = 0);

  // Returns the logits [vocab_size] after `token` at `position`, valid until the next call. Positions are
  // consecutive from 0; an earlier position discards everything after it. `token` is below vocab_size,
  // `position` below context_length. Not thread-safe.
  std::span<const float> forward(uint32_t token, uint32_t position);

  const ModelConfig& config() const { return config_; }

 private:
  using Tensor = std::vector<float>;
  struct Linear {
    Tensor weight;  // [n_out x n_in]
    Tensor bias;    // [n_out], or empty
  };
  struct NormWeights {
    Tensor weight;  // [n], for nearly all of them d_model
    Tensor bias;    // [n], or empty
  };
  struct FeedForward {
    Linear gate;  // [d_ff x d_model], empty if the model has none
    Linear up;    // [d_ff x d_model]
    Linear down;  // [d_model x d_ff]
  };
  struct Layer {
    NormWeights attn_norm;
    NormWeights q_norm;  // [head_dim or n_heads * head_dim], empty if the model has none
    NormWeights k_norm;
    Linear q;                    // [n_heads * head_dim x d_model]
    Linear k;                    // [n_kv_heads * head_dim x d_model]
    Linear v;                    // [n_kv_heads * head_dim x d_model]
    Linear o;                    // [d_model x n_heads * head_dim]
    NormWeights ffn_norm;        // empty if the FFN shares attn_norm
    NormWeights attn_post_norm;  // [d_model], empty if the model has none
    NormWeights ffn_post_norm;
    Tensor sinks;         // [n_heads], empty if the model has none
    uint32_t window = 0;  // positions attended to; 0: all
    bool turns = true;
    bool turns_locally = false;
    FeedForward ffn;                   // empty in a layer with experts
    FeedForward shared;                // beside experts
    Tensor shared_gate;                // [d_model]
    Linear router;                     // [n_experts x d_model], of a layer with experts
    Tensor correction;                 // [n_experts]
    std::vector<FeedForward> experts;  // [n_experts]
    Tensor keys;                       // [positions x n_kv_heads * head_dim], rotated
    Tensor values;                     // [positions x n_kv_heads * head_dim]
  };

  explicit Reference(ModelConfig config) : config_(std::move(config)) {}

  void embed(uint32_t token, uint32_t position);
  void attention(Layer& layer, uint32_t position);                        // normed_ -> delta_
  void feed_forward(const FeedForward& ffn, std::span<float> out);        // of normed_
  std::vector<float> ranks(const Layer& layer) const;                     // of routing_
  void mixture(const Layer& layer);                                       // normed_ -> delta_
  void normalize(const NormWeights& norm);                                // x_ -> normed_
  void normalize_heads(const NormWeights& norm, std::span<float> heads);  // in place, each or all at once
  void rotate(std::span<const float> frequencies, std::span<float> heads, uint32_t position);  // n x head_dim
  void add_result(const NormWeights& norm, std::span<float> result);                           // to x_
  void attend(const Layer& layer, uint32_t position);  // q_ and the cache -> mixed_

  ModelConfig config_;
  std::vector<float> frequencies_;        // [rotary_dim / 2]
  std::vector<float> local_frequencies_;  // of layers that turn locally
  Tensor embed_;                          // [vocab_size x d_model]
  Tensor position_;  // [context_length + position_offset x d_model], learned positions only
  std::vector<Layer> layers_;
  NormWeights out_norm_;
  Linear head_;  // [vocab_size x d_model]; empty when tied: the embedding is used

  std::vector<float> x_;         // [d_model] the residual stream
  std::vector<float> normed_;    // [d_model]
  std::vector<float> q_;         // [n_heads * head_dim]
  std::vector<float> mixed_;     // [n_heads * head_dim] values weighted by attention
  std::vector<float> scores_;    // [positions] of one head
  std::vector<float> hidden_;    // [d_ff]
  std::vector<float> up_;        // [d_ff]
  std::vector<float> delta_;     // [d_model] the result of a block, added to x
  std::vector<float> attended_;  // [d_model] attention's result, kept apart if the FFN reads the same x
  std::vector<float> routing_;   // [n_experts] the router's probabilities
  std::vector<float> expert_;    // [d_model] the result of one expert
  std::vector<float> logits_;    // [vocab_size]
};

}  // namespace tierd
