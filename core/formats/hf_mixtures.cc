#include "core/formats/hf_mixtures.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/formats/hf_fields.h"

namespace tierd {
namespace {

// Reads experts of one width. Versions of transformers differ in the key for their number, so both are
// accepted.
Status read_experts(const JsonFields& f, const char* count_key, const char* ff_key, ModelConfig& c) {
  const bool local = std::string_view(count_key) == "num_local_experts";
  const char* const other_key = local ? "num_experts" : "num_local_experts";
  if (!f.has(count_key) && f.has(other_key)) count_key = other_key;
  TIERD_ASSIGN(c.n_experts, f.u32(count_key));
  TIERD_ASSIGN(const uint32_t other, f.u32(other_key, c.n_experts));
  if (other != c.n_experts) {
    return f.error(other_key, fmt::format("found {}, {} is {}", other, count_key, c.n_experts));
  }
  TIERD_TRY(unless(c.n_experts != 0, f, count_key, "found 0, expected the number of a layer's experts"));
  TIERD_ASSIGN(c.experts_per_token, f.u32("num_experts_per_tok"));
  TIERD_ASSIGN(c.d_ff, f.u32(ff_key));
  return {};
}

// Sets the layers of Qwen's mixtures that have one network: those of a list, and all but every step-th.
Status read_qwen_dense_layers(const JsonFields& f, ModelConfig& c) {
  TIERD_ASSIGN(const uint32_t step, f.u32("decoder_sparse_step", 1));
  TIERD_ASSIGN(const std::vector<uint32_t> listed, f.u32_list("mlp_only_layers"));
  TIERD_TRY(unless(step != 0, f, "decoder_sparse_step", "found 0, expected a number of layers"));
  for (uint32_t layer = 0; layer < c.n_layers; ++layer) {
    const bool is_listed = std::ranges::find(listed, layer) != listed.end();
    if (is_listed || (layer + 1) % step != 0) c.dense_layers.push_back(layer);
  }
  if (c.dense_layers.empty()) return {};
  TIERD_ASSIGN(c.dense_d_ff, f.u32("intermediate_size"));
  return {};
}

}  // namespace

Status read_hf_mixtral(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_hf_llama_like(f, c));
  TIERD_TRY(read_experts(f, "num_local_experts", "intermediate_size", c));
  c.expert_weights_sum_to_one = true;
  TIERD_ASSIGN(c.sliding_window, f.u32("sliding_window", 0));
  return {};
}

Status read_hf_qwen2_moe(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_hf_llama_like(f, c));
  TIERD_TRY(read_experts(f, "num_experts", "moe_intermediate_size", c));
  TIERD_ASSIGN(c.shared_d_ff, f.u32("shared_expert_intermediate_size"));
  c.shared_gate = true;
  TIERD_ASSIGN(c.expert_weights_sum_to_one, f.flag("norm_topk_prob", false));
  TIERD_ASSIGN(c.qkv_bias, f.flag("qkv_bias", true));
  TIERD_TRY(read_qwen_dense_layers(f, c));
  return read_qwen2_window(f, c);
}

Status read_hf_qwen3_moe(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_hf_llama_like(f, c));
  TIERD_TRY(read_experts(f, "num_experts", "moe_intermediate_size", c));
  TIERD_ASSIGN(c.expert_weights_sum_to_one, f.flag("norm_topk_prob", false));
  c.qk_norm = true;
  TIERD_ASSIGN(c.qkv_bias, f.flag("attention_bias", false));
  c.o_bias = c.qkv_bias;
  TIERD_TRY(read_qwen_dense_layers(f, c));
  return read_qwen2_window(f, c);
}

Status read_hf_olmoe(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_hf_llama_like(f, c));
  TIERD_TRY(read_experts(f, "num_experts", "intermediate_size", c));
  TIERD_ASSIGN(c.expert_weights_sum_to_one, f.flag("norm_topk_prob", false));
  TIERD_ASSIGN(c.qkv_clip, f.f32("clip_qkv", 0.0f));
  c.qk_norm = c.qk_norm_wide = true;
  TIERD_ASSIGN(c.qkv_bias, f.flag("attention_bias", false));
  c.o_bias = c.qkv_bias;
  return {};
}

// GLM 4.5: scores by themselves, a correction for the choice, a network that all use, and dense first layers.
Status read_hf_glm4_moe(const JsonFields& f, ModelConfig& c) {
  constexpr float kUsualRotary = 0.5f;
  TIERD_TRY(read_hf_llama_like(f, c, kUsualRotary));
  TIERD_ASSIGN(c.dense_d_ff, f.u32("intermediate_size"));
  TIERD_TRY(read_experts(f, f.has("n_routed_experts") ? "n_routed_experts" : "num_local_experts",
                         "moe_intermediate_size", c));
  TIERD_ASSIGN(const uint32_t shared, f.u32("n_shared_experts", 1));
  c.shared_d_ff = shared * c.d_ff;
  c.router_score = RouterScore::sigmoid;
  c.router_correction = true;
  TIERD_ASSIGN(c.expert_weights_sum_to_one, f.flag("norm_topk_prob", true));
  TIERD_ASSIGN(c.expert_scale, f.f32("routed_scaling_factor", 1.0f));
  TIERD_ASSIGN(const uint32_t groups, f.u32("n_group", 1));
  if (groups > 1) {
    c.expert_groups = groups;
    c.group_best = 2;
    TIERD_ASSIGN(c.expert_groups_used, f.u32("topk_group", 1));
  }
  TIERD_ASSIGN(const uint32_t dense, f.u32("first_k_dense_replace", 1));
  for (uint32_t layer = 0; layer < std::min(dense, c.n_layers); ++layer) c.dense_layers.push_back(layer);
  TIERD_ASSIGN(c.qkv_bias, f.flag("attention_bias", false));
  TIERD_ASSIGN(c.qk_norm, f.flag("use_qk_norm", false));
  return {};
}

Status read_hf_gpt_oss(const JsonFields& f, ModelConfig& c) {
  constexpr uint32_t kUsualWindow = 128;
  constexpr float kUsualLimit = 7, kAlpha = 1.702F;
  TIERD_TRY(read_hf_llama_like(f, c));
  TIERD_TRY(read_experts(f, "num_local_experts", "intermediate_size", c));
  c.expert_weights_sum_to_one = true;
  c.router_bias = c.ffn_bias = true;
  c.attention_sinks = true;
  TIERD_ASSIGN(c.qkv_bias, f.flag("attention_bias", true));
  c.o_bias = c.qkv_bias;
  c.activation = Activation::swiglu_oai;
  TIERD_ASSIGN(c.activation_threshold, f.f32("swiglu_limit", kUsualLimit));
  TIERD_ASSIGN(const float alpha, f.f32("swiglu_alpha", kAlpha));
  TIERD_TRY(
      unless(alpha == kAlpha, f, "swiglu_alpha", fmt::format("found {}, supported is {}", alpha, kAlpha)));
  TIERD_ASSIGN(c.sliding_window, f.u32("sliding_window", kUsualWindow));
  set_window_period(2, c);
  return {};
}

}  // namespace tierd
