// The fields of a ModelConfig by name, in one list for every format that stores a configuration: the store's
// manifest and the shape files.
#pragma once

#include "core/model/config.h"

namespace tierd {

// Calls visit(name, field) for every field; `Config` is ModelConfig or const ModelConfig. Field types: bool,
// uint32_t, float, std::string, std::vector<float>, std::vector<uint32_t>
// and the enums above. Fields that a format need not have come with their default: visit(name, field,
// default).
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
  visit("global_layers", config.global_layers, std::vector<uint32_t>());
  visit("unturned_layers", config.unturned_layers, std::vector<uint32_t>());
  visit("n_experts", config.n_experts);
  visit("experts_per_token", config.experts_per_token);
  visit("expert_weights_sum_to_one", config.expert_weights_sum_to_one);
  visit("dense_layers", config.dense_layers, std::vector<uint32_t>());
  visit("dense_d_ff", config.dense_d_ff, 0U);
  visit("shared_d_ff", config.shared_d_ff, 0U);
  visit("shared_gate", config.shared_gate, false);
  visit("router_score", config.router_score, RouterScore::softmax);
  visit("router_bias", config.router_bias, false);
  visit("router_correction", config.router_correction, false);
  visit("expert_groups", config.expert_groups, 0U);
  visit("expert_groups_used", config.expert_groups_used, 0U);
  visit("group_best", config.group_best, 1U);
  visit("expert_scale", config.expert_scale, 1.0F);
  visit("norm", config.norm);
  visit("norm_eps", config.norm_eps);
  visit("activation", config.activation);
  visit("activation_threshold", config.activation_threshold);
  visit("gated", config.gated);
  visit("parallel", config.parallel);
  visit("attn_norm", config.attn_norm, true);
  visit("ffn_norm", config.ffn_norm);
  visit("post_norms", config.post_norms, false);
  visit("qk_norm", config.qk_norm);
  visit("qk_norm_wide", config.qk_norm_wide);
  visit("qkv_relu", config.qkv_relu, false);
  visit("qkv_clip", config.qkv_clip);
  visit("embed_scale", config.embed_scale, 1.0F);
  visit("residual_scale", config.residual_scale, 1.0F);
  visit("logit_scale", config.logit_scale, 1.0F);
  visit("attention_scale", config.attention_scale, 0.0F);
  visit("attention_cap", config.attention_cap, 0.0F);
  visit("logit_cap", config.logit_cap, 0.0F);
  visit("attention_sinks", config.attention_sinks, false);
  visit("query_growth", config.query_growth, 0.0F);
  visit("growth_span", config.growth_span, 0U);
  visit("position", config.position);
  visit("position_offset", config.position_offset);
  visit("rope_theta", config.rope.theta);
  visit("rope_dim", config.rope.dim);
  visit("rope_scaling", config.rope.scaling);
  visit("rope_factor", config.rope.factor);
  visit("rope_low_freq_factor", config.rope.low_freq_factor);
  visit("rope_high_freq_factor", config.rope.high_freq_factor);
  visit("rope_original_context", config.rope.original_context);
  visit("rope_beta_fast", config.rope.beta_fast, 32.0F);
  visit("rope_beta_slow", config.rope.beta_slow, 1.0F);
  visit("rope_bounds_are_whole", config.rope.bounds_are_whole, true);
  visit("rope_magnitude", config.rope.magnitude, 1.0F);
  visit("rope_divisors", config.rope.divisors);
  visit("rope_long_divisors", config.rope.long_divisors, std::vector<float>());
  visit("local_theta", config.local_theta, 0.0F);
  visit("qkv_bias", config.qkv_bias);
  visit("o_bias", config.o_bias);
  visit("ffn_bias", config.ffn_bias);
  visit("norm_bias", config.norm_bias);
  visit("head_bias", config.head_bias);
  visit("tied_embeddings", config.tied_embeddings);
}

}  // namespace tierd
