// The fields of a ModelConfig by name, in one list for every format that stores a configuration: the store's
// manifest and the shape files.
#pragma once

#include "core/model/config.h"

namespace tierd {

// Calls visit(name, field) for every field; `Config` is ModelConfig or const ModelConfig. Field types: bool,
// uint32_t, float, std::string, std::vector<float> and the enums above.
template <class Config, class Visit>
void visit_fields(Config& config, Visit&& visit) {
  visit("architecture", config.architecture);
  visit("name", config.name);
  visit("n_layers", config.n_layers);
  visit("d_model", config.d_model);
  visit("n_heads", config.n_heads);
  visit("n_kv_heads", config.n_kv_heads);
  visit("head_dim", config.head_dim);
  visit("d_ff", config.d_ff);
  visit("vocab_size", config.vocab_size);
  visit("context_length", config.context_length);
  visit("sliding_window", config.sliding_window);
  visit("n_experts", config.n_experts);
  visit("experts_per_token", config.experts_per_token);
  visit("expert_weights_sum_to_one", config.expert_weights_sum_to_one);
  visit("norm", config.norm);
  visit("norm_eps", config.norm_eps);
  visit("activation", config.activation);
  visit("activation_threshold", config.activation_threshold);
  visit("gated", config.gated);
  visit("parallel", config.parallel);
  visit("ffn_norm", config.ffn_norm);
  visit("qk_norm", config.qk_norm);
  visit("qk_norm_wide", config.qk_norm_wide);
  visit("qkv_relu", config.qkv_relu);
  visit("qkv_clip", config.qkv_clip);
  visit("position", config.position);
  visit("position_offset", config.position_offset);
  visit("rope_theta", config.rope.theta);
  visit("rope_dim", config.rope.dim);
  visit("rope_scaling", config.rope.scaling);
  visit("rope_factor", config.rope.factor);
  visit("rope_low_freq_factor", config.rope.low_freq_factor);
  visit("rope_high_freq_factor", config.rope.high_freq_factor);
  visit("rope_original_context", config.rope.original_context);
  visit("rope_divisors", config.rope.divisors);
  visit("qkv_bias", config.qkv_bias);
  visit("o_bias", config.o_bias);
  visit("ffn_bias", config.ffn_bias);
  visit("norm_bias", config.norm_bias);
  visit("head_bias", config.head_bias);
  visit("tied_embeddings", config.tied_embeddings);
}

}  // namespace tierd
