// What an architecture is made of, as data: every supported family is a row of switches, not a class.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/activation.h"

namespace tierd {

enum class Norm : uint8_t { rms, layer };
// How positions enter: rotary pairs (2i, 2i+1), as llama2.c and GGUF's "llama" keep their weights; rotary
// pairs (i, i + d/2), as Hugging Face keeps them; or a learned table added to the embedding (OPT).
enum class PositionKind : uint8_t { rope_interleaved, rope_half, learned };
enum class RopeScaling : uint8_t { none, linear, llama3 };

struct Rope {
  float theta = 10000.0f;
  RopeScaling scaling = RopeScaling::none;
  float factor = 1.0f;
  uint32_t dim = 0;  // so many of a head's values turn, the first ones; 0: all
  // llama3 only (Llama 3.1's rope_scaling)
  float low_freq_factor = 1.0f;
  float high_freq_factor = 4.0f;
  uint32_t original_context = 8192;
  // GGUF's rope_freqs.weight, rotary_dim/2 divisors of the frequencies; empty: derived from the above
  std::vector<float> divisors;
};

struct ModelConfig {
  std::string architecture;  // "llama", "opt", "falcon", …: for people and for chat templates
  std::string name;

  uint32_t n_layers = 0;
  uint32_t d_model = 0;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t d_ff = 0;
  uint32_t vocab_size = 0;
  uint32_t context_length = 0;
  uint32_t sliding_window = 0;  // attend to the last so many positions (Mistral 7B v0.1); 0: all
  // A mixture: each layer has so many feed-forward networks of width d_ff, of which a router chooses some for
  // each token. 0: one network, without a router.
  uint32_t n_experts = 0;
  uint32_t experts_per_token = 0;

  Norm norm = Norm::rms;
  float norm_eps = 1e-5f;
  Activation activation = Activation::silu;
  float activation_threshold = 0;  // of relu
  // Whether the activation is exactly 0 for some inputs, so that neurons behind it may give nothing.
  bool rectifies() const { return activation == Activation::relu || activation == Activation::relu_squared; }
  bool gated = true;      // down(act(gate x) * up x); otherwise down(act(up x))
  bool parallel = false;  // attention and FFN read the same x, and both are added to it
  bool ffn_norm = true;   // the FFN reads x through a norm of its own; otherwise, where parallel, attention's
  bool qk_norm =
      false;  // a norm (of `norm`'s kind, layer norms with bias) of each head of q, k before it turns
  bool qk_norm_wide = false;  // and not of each head, but of all of them at once (OLMoE)
  bool qkv_relu = false;      // q, k and v are of what a ReLU leaves of the normed x (Mirzadeh et al. 2023)
  float qkv_clip = 0;         // q, k and v are cut off at so much to either side (OLMoE); 0: they are not
  // The weights of the chosen experts are divided by their sum (Mixtral: a softmax over the chosen ones).
  bool expert_weights_sum_to_one = false;
  PositionKind position = PositionKind::rope_half;
  uint32_t position_offset = 0;  // OPT's table starts two rows late
  Rope rope;
  bool channel_order =
      false;  // qkv, o, up and down take their inputs in orders of their own, which are tensors
  bool expert_order = false;  // with channel_order: so do up and down of each expert
  bool qkv_bias = false;
  bool o_bias = false;
  bool ffn_bias = false;
  bool norm_bias = false;  // layer norms with bias
  bool head_bias = false;
  bool tied_embeddings = false;

  bool is_mixture() const { return n_experts != 0; }
  uint32_t q_dim() const { return n_heads * head_dim; }
  uint32_t kv_dim() const { return n_kv_heads * head_dim; }
  uint32_t rotary_dim() const { return rope.dim != 0 ? rope.dim : head_dim; }
};

// Every field within what memory and arithmetic can bear and consistent with the others; files are not
// trusted. Error: corrupt, with `origin` naming the file.
Status validate(const ModelConfig& config, std::string_view origin);

// What tensors for plugins must agree with to be about this model: "llama, 22 layers, width 2048, networks of
// 5632, 32 and 4 heads of 64, 32000 tokens".
std::string shape_text(const ModelConfig& config);

// The inverse frequencies of the rotary embedding, rotary_dim/2 of them, scaling applied
// (transformers: modeling_rope_utils.py, "linear" and "llama3").
std::vector<float> rope_frequencies(const ModelConfig& config);

// The tensors that a model of this configuration must have, by our names (matrices are [out rows x in cols]):
//   embed [vocab x d]   position [context + offset x d]   out_norm [d] (+ .bias)   head [vocab x d] (+ .bias)
//   layers.N.attn_norm (+ .bias)   layers.N.q / k / v / o (+ .bias)
//   layers.N.q_norm / k_norm [head_dim, or where wide all heads] (+ .bias)
//   layers.N.ffn_norm (+ .bias)    layers.N.gate / up / down (+ .bias)
// where channels have an order: layers.N.qkv.order [d], o.order [heads], up.order [d], down.order [d_ff]
// and of a mixture, in place of gate, up and down and their orders,
//   layers.N.router [experts x d]   layers.N.experts.E.gate / up / down
// A vector has rows 1. `head` is absent when tied.
struct TensorSpec {
  std::string name;
  uint64_t rows = 0;
  uint64_t cols = 0;
};
std::vector<TensorSpec> required_tensors(const ModelConfig& config);

}  // namespace tierd
