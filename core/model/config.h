// An architecture as data: every supported family is a row of switches, not a class.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_names.h"
#include "core/base/result.h"
#include "core/model/activation.h"
#include "core/model/rope.h"

namespace tierd {

enum class Norm : uint8_t { rms, layer };
constexpr std::array<std::string_view, 2> names_of(Norm) {
  return {"rms", "layer"};
}
// The encoding of positions: rotary pairs (2i, 2i+1), as in the weights of llama2.c and of GGUF's "llama";
// rotary pairs (i, i + d/2), as in Hugging Face's weights; or a learned table added to the embedding (OPT).
enum class PositionKind : uint8_t { rope_interleaved, rope_half, learned };
constexpr std::array<std::string_view, 3> names_of(PositionKind) {
  return {"rope_interleaved", "rope_half", "learned"};
}
struct ModelConfig {
  std::string architecture;  // "llama", "opt", "falcon", …: for messages and for chat templates
  std::string name;

  uint32_t n_layers = 0;
  uint32_t d_model = 0;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t d_ff = 0;
  uint32_t vocab_size = 0;
  uint32_t context_length = 0;
  uint32_t sliding_window = 0;  // positions attended to, the last ones (Mistral 7B v0.1); 0: all
  // The layers that attend to all positions in spite of the window, in order (Gemma 3: every sixth).
  std::vector<uint32_t> global_layers;
  std::vector<uint32_t> unturned_layers;  // layers without rotary positions, in order (SmolLM3)
  // A mixture has this many feed-forward networks of width d_ff in each layer, of which a router chooses some
  // for each token. 0: one network, without a router.
  uint32_t n_experts = 0;
  uint32_t experts_per_token = 0;
  // The layers of a mixture that have one network, of width dense_d_ff, in place of experts, in order.
  std::vector<uint32_t> dense_layers;
  uint32_t dense_d_ff = 0;
  uint32_t shared_d_ff = 0;  // of a network that every token uses beside the experts; 0: none
  bool shared_gate = false;  // its result is multiplied by sigmoid(shared_gate . x) (Qwen2-MoE)
  RouterScore router_score = RouterScore::softmax;
  bool router_bias = false;        // the router's products have a bias (gpt-oss)
  bool router_correction = false;  // scores have another one, for the choice alone (DeepSeek-V3, GLM-4.5)
  // Experts are chosen of the best groups alone, of adjacent experts each; a group's score is the sum of its
  // `group_best` best ones (DeepSeek). 0: no groups.
  uint32_t expert_groups = 0;
  uint32_t expert_groups_used = 0;
  uint32_t group_best = 1;
  float expert_scale = 1;  // the weights of the chosen experts are multiplied by it

  Norm norm = Norm::rms;
  float norm_eps = 1e-5f;
  Activation activation = Activation::silu;
  float activation_threshold = 0;  // of relu
  // Returns whether the activation is exactly 0 for some inputs, so that such neurons contribute nothing.
  bool rectifies() const { return activation == Activation::relu || activation == Activation::relu_squared; }
  bool gated = true;        // down(act(gate x) * up x); otherwise down(act(up x))
  bool parallel = false;    // attention and FFN read the same x, and both results are added to it
  bool attn_norm = true;    // attention and FFN read normed x; if false, x as it is (OLMo 2)
  bool ffn_norm = true;     // the FFN has its own norm of x; if false, it shares attention's, or has none
  bool post_norms = false;  // the results of attention and FFN are normed before they are added (Gemma 2)
  bool qk_norm =
      false;  // q and k have a norm per head (of `norm`'s kind, layer norms with bias) before rotation
  bool qk_norm_wide = false;  // that norm is over all heads at once (OLMoE)
  bool qkv_relu = false;      // q, k and v are computed from relu(normed x) (Mirzadeh et al. 2023)
  float qkv_clip = 0;         // q, k and v are clamped to [-qkv_clip, qkv_clip] (OLMoE); 0: not clamped
  float embed_scale = 1;      // the embedding is multiplied by it (Gemma, Granite)
  float residual_scale = 1;   // the results of attention and FFN are, before they are added (Granite)
  float logit_scale = 1;      // the logits are (Granite)
  float attention_scale = 0;  // the products of queries and keys are; 0: 1/sqrt(head_dim)
  // Scores of attention and logits become cap * tanh(x / cap) (Gemma 2); 0: they stay.
  float attention_cap = 0;
  float logit_cap = 0;
  bool attention_sinks = false;  // each head has a score of no position, which takes its share (gpt-oss)
  // Queries at position p are multiplied by 1 + query_growth * ln(1 + floor(p / growth_span)) (Ministral 3).
  float query_growth = 0;
  uint32_t growth_span = 0;
  // The weights of the chosen experts are divided by their sum (Mixtral: a softmax over the chosen ones).
  bool expert_weights_sum_to_one = false;
  PositionKind position = PositionKind::rope_half;
  uint32_t position_offset = 0;  // OPT's table starts with two unused rows
  Rope rope;
  float local_theta =
      0;  // of layers with a window, whose frequencies are not scaled (Gemma 3); 0: as the others
  bool channel_order = false;  // qkv, o, up and down take their inputs in orders given by tensors
  bool expert_order = false;   // with channel_order: so do up and down of each expert
  bool qkv_bias = false;
  bool o_bias = false;
  bool ffn_bias = false;
  bool norm_bias = false;  // layer norms with bias
  bool head_bias = false;
  bool tied_embeddings = false;

  bool is_mixture() const { return n_experts != 0; }
  bool has_experts(uint32_t layer) const {
    return is_mixture() && !std::ranges::binary_search(dense_layers, layer);
  }
  // The width of the network that every token uses in a layer; 0: all use experts alone.
  uint32_t network_width(uint32_t layer) const {
    if (!is_mixture()) return d_ff;
    return has_experts(layer) ? shared_d_ff : dense_d_ff;
  }
  uint32_t widest_network() const {
    return is_mixture() ? std::max(shared_d_ff, dense_layers.empty() ? 0 : dense_d_ff) : d_ff;
  }
  uint32_t q_dim() const { return n_heads * head_dim; }
  uint32_t kv_dim() const { return n_kv_heads * head_dim; }
  uint32_t rotary_dim() const { return rope.dim != 0 ? rope.dim : head_dim; }
  // The window of a layer; 0: all positions.
  uint32_t window_of(uint32_t layer) const {
    return std::ranges::binary_search(global_layers, layer) ? 0 : sliding_window;
  }
  bool turns_locally(uint32_t layer) const { return local_theta != 0 && window_of(layer) != 0; }
  bool turns(uint32_t layer) const {
    return position != PositionKind::learned && !std::ranges::binary_search(unturned_layers, layer);
  }
};

// Checks that every field is within the bounds of memory and arithmetic and consistent with the others; files
// are not trusted. Error: corrupt, with `origin` naming the file.
Status validate(const ModelConfig& config, std::string_view origin);

// Returns whether attention and the feed-forward network are those of the first Llama and OPT models, but for
// the switches in which those differ: for tools that compute or draw layers themselves.
bool has_plain_layers(const ModelConfig& config);

// Returns the shape that tensors for plugins must match: "llama, 22 layers, width 2048, networks of 5632, 32
// and 4 heads of 64, 32000 tokens".
std::string shape_text(const ModelConfig& config);

// Returns the rotary of the layers that turn locally.
Rope local_rope(const ModelConfig& config);

// The tensors that a model of this configuration must have, by our names (matrices are [out rows x in cols]):
//   embed [vocab x d]   position [context + offset x d]   out_norm [d] (+ .bias)   head [vocab x d] (+ .bias)
//   layers.N.attn_norm (+ .bias)   layers.N.q / k / v / o (+ .bias)   layers.N.sinks [heads]
//   layers.N.q_norm / k_norm [head_dim, or where wide all heads] (+ .bias)
//   layers.N.ffn_norm (+ .bias)    layers.N.gate / up / down (+ .bias)
//   layers.N.attn_post_norm / ffn_post_norm [d]
// where channels have an order: layers.N.qkv.order [d], o.order [heads], up.order [d], down.order [d_ff]
// and of a mixture, in place of gate, up and down and their orders,
//   layers.N.router [experts x d] (+ .bias, .correction [experts])   layers.N.experts.E.gate / up / down
//   layers.N.experts.gate.bias / up.bias / down.bias [experts x width]
//   layers.N.shared.gate / up / down   layers.N.shared_gate [d]
// A vector has rows 1. `head` is absent when tied.
struct TensorSpec {
  std::string name;
  uint64_t rows = 0;
  uint64_t cols = 0;
};
std::vector<TensorSpec> required_tensors(const ModelConfig& config);

}  // namespace tierd
