#include "core/formats/gguf_families.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/check.h"

namespace tierd {
namespace {

using Keys = std::span<const std::string_view>;

struct Family {
  std::string_view name;
  // The keys of kCounts and kChanging that it has.
  Keys keys = {};
  // Sets what the name alone says, and reads those keys.
  Status (*read)(const GgufHeader& header, const std::string& prefix, ModelConfig& c);
};

// Keys that change results and that not every family has: numbers of which 0 means none, and others.
constexpr std::array<std::string_view, 4> kCounts = {"expert_count", "expert_shared_count",
                                                     "leading_dense_block_count", kGgufFurtherLayers};
constexpr std::array<std::string_view, 14> kChanging = {"rope.freq_base_swa",
                                                        "attention.clamp_kqv",
                                                        "attention.scale",
                                                        "attention.sliding_window_pattern",
                                                        "attention.temperature_scale",
                                                        "attn_logit_softcapping",
                                                        "final_logit_softcapping",
                                                        "embedding_scale",
                                                        "residual_scale",
                                                        "logit_scale",
                                                        "expert_gating_func",
                                                        "expert_weights_scale",
                                                        "expert_weights_norm",
                                                        "expert_shared_feed_forward_length"};

constexpr std::array<std::string_view, 1> kExpertKeys = {"expert_count"};
constexpr std::array<std::string_view, 2> kOlmoeKeys = {"expert_count", "attention.clamp_kqv"};
constexpr std::array<std::string_view, 2> kQwen2MoeKeys = {"expert_count",
                                                           "expert_shared_feed_forward_length"};
constexpr std::array<std::string_view, 7> kGlm4MoeKeys = {
    "expert_count",       "expert_shared_count",  "leading_dense_block_count", kGgufFurtherLayers,
    "expert_gating_func", "expert_weights_scale", "expert_weights_norm"};
constexpr std::array<std::string_view, 3> kGptOssKeys = {"expert_count", "attention.sliding_window_pattern",
                                                         "expert_gating_func"};
constexpr std::array<std::string_view, 1> kMistral3Keys = {"attention.temperature_scale"};
constexpr std::array<std::string_view, 4> kGemma3Keys = {"rope.freq_base_swa",
                                                         "attention.sliding_window_pattern",
                                                         "attn_logit_softcapping", "final_logit_softcapping"};
constexpr std::array<std::string_view, 3> kGemmaKeys = {"attention.sliding_window_pattern",
                                                        "attn_logit_softcapping", "final_logit_softcapping"};
constexpr std::array<std::string_view, 4> kGraniteKeys = {"attention.scale", "embedding_scale",
                                                          "residual_scale", "logit_scale"};
constexpr std::array<std::string_view, 1> kWindowKeys = {"attention.sliding_window_pattern"};

// Reads the experts of a mixture. `required`: the architecture has no model without.
Status read_experts(const GgufHeader& header, const std::string& prefix, bool required, ModelConfig& c) {
  const std::string count_key = prefix + "expert_count";
  TIERD_ASSIGN(c.n_experts, header.u32(count_key, required ? std::optional<uint32_t>() : 0));
  if (c.n_experts == 0 && required)
    return header.error(Code::corrupt, count_key, "found 0, expected the number of a layer's experts");
  if (!c.is_mixture()) return {};
  TIERD_ASSIGN(c.experts_per_token, header.u32(prefix + "expert_used_count"));
  TIERD_ASSIGN(c.d_ff, header.u32(prefix + "expert_feed_forward_length", c.d_ff));
  c.expert_weights_sum_to_one = true;
  return {};
}

// Sets the layers without a window: of each `period` layers the last.
Status read_window_period(const GgufHeader& header, const std::string& prefix, uint32_t usual,
                          ModelConfig& c) {
  if (c.sliding_window == 0) return {};
  const std::string key = prefix + "attention.sliding_window_pattern";
  TIERD_ASSIGN(const uint32_t period, header.u32(key, usual));
  if (period == 0) return header.error(Code::corrupt, key, "found 0, expected a number of layers");
  for (uint32_t layer = period - 1; layer < c.n_layers; layer += period) c.global_layers.push_back(layer);
  return {};
}

// llama.cpp's converter permutes q and k of Llama models and of those with its code to pairs (2i, 2i + 1).
// Its Mixtral is "llama" with experts.
Status read_llama(const GgufHeader& header, const std::string& prefix, ModelConfig& c) {
  c.position = PositionKind::rope_interleaved;
  return read_experts(header, prefix, false, c);
}

Status read_qwen2(const GgufHeader&, const std::string&, ModelConfig&) {
  return {};
}

Status read_qwen3(const GgufHeader&, const std::string&, ModelConfig& c) {
  c.qk_norm = true;
  return {};
}

Status read_qwen3_moe(const GgufHeader& header, const std::string& prefix, ModelConfig& c) {
  c.qk_norm = true;
  return read_experts(header, prefix, true, c);
}

Status read_olmoe(const GgufHeader& header, const std::string& prefix, ModelConfig& c) {
  c.qk_norm = c.qk_norm_wide = true;
  TIERD_TRY(read_experts(header, prefix, true, c));
  c.expert_weights_sum_to_one = false;
  TIERD_ASSIGN(c.qkv_clip, header.f32(prefix + "attention.clamp_kqv", 0.0f));
  return {};
}

Status read_olmo2(const GgufHeader& header, const std::string& prefix, ModelConfig& c) {
  c.qk_norm = c.qk_norm_wide = true;
  c.attn_norm = c.ffn_norm = false;
  c.post_norms = true;
  return read_window_period(header, prefix, 4, c);
}

// Sets the switches that Gemma 2 and 3 share. The norms' weights include the 1 that the models add to them.
Status read_gemma(const GgufHeader& header, const std::string& prefix, ModelConfig& c) {
  c.activation = Activation::gelu_tanh;
  c.post_norms = true;
  c.embed_scale = std::sqrt(static_cast<float>(c.d_model));
  TIERD_ASSIGN(c.attention_cap, header.f32(prefix + "attn_logit_softcapping", 0.0f));
  TIERD_ASSIGN(c.logit_cap, header.f32(prefix + "final_logit_softcapping", 0.0f));
  return {};
}

// The largest models scale queries by the width for each head, which no key says: llama.cpp knows them by
// their layers.
float gemma_attention_scale(const ModelConfig& c, uint32_t layers_of_27b) {
  return c.n_layers == layers_of_27b ? 1.0f / std::sqrt(static_cast<float>(c.d_model / c.n_heads)) : 0;
}

Status read_gemma2(const GgufHeader& header, const std::string& prefix, ModelConfig& c) {
  constexpr uint32_t kWindow = 4096;
  TIERD_TRY(read_gemma(header, prefix, c));
  TIERD_ASSIGN(c.sliding_window, header.u32(prefix + "attention.sliding_window", kWindow));
  c.attention_scale = gemma_attention_scale(c, 46);
  return read_window_period(header, prefix, 2, c);
}

Status read_gemma3(const GgufHeader& header, const std::string& prefix, ModelConfig& c) {
  constexpr float kLocalTheta = 10000;
  TIERD_TRY(read_gemma(header, prefix, c));
  c.qk_norm = true;
  c.attention_scale = gemma_attention_scale(c, 62);
  TIERD_ASSIGN(c.local_theta, header.f32(prefix + "rope.freq_base_swa", kLocalTheta));
  if (c.sliding_window == 0) c.local_theta = 0;
  return read_window_period(header, prefix, 6, c);
}

Status read_granite(const GgufHeader& header, const std::string& prefix, ModelConfig& c) {
  c.position = PositionKind::rope_interleaved;
  TIERD_ASSIGN(c.embed_scale, header.f32(prefix + "embedding_scale", 1.0f));
  TIERD_ASSIGN(c.residual_scale, header.f32(prefix + "residual_scale", 1.0f));
  TIERD_ASSIGN(c.attention_scale, header.f32(prefix + "attention.scale", 0.0f));
  TIERD_ASSIGN(const float divisor, header.f32(prefix + "logit_scale", 1.0f));
  if (!(divisor > 0)) {
    return header.error(Code::corrupt, prefix + "logit_scale",
                        fmt::format("found {}, expected a positive number", divisor));
  }
  c.logit_scale = 1 / divisor;
  return {};
}

Status read_starcoder2(const GgufHeader& header, const std::string& prefix, ModelConfig& c) {
  c.norm = Norm::layer;
  c.norm_bias = true;
  c.gated = false;
  c.activation = Activation::gelu_tanh;
  TIERD_ASSIGN(c.norm_eps, header.f32(prefix + "attention.layer_norm_epsilon"));
  return {};
}

// Ministral 3. llama.cpp's converter permutes q and k as for Llama.
Status read_mistral3(const GgufHeader& header, const std::string& prefix, ModelConfig& c) {
  c.position = PositionKind::rope_interleaved;
  TIERD_ASSIGN(c.query_growth, header.f32(prefix + "attention.temperature_scale", 0.0f));
  if (c.query_growth == 0) return {};
  TIERD_ASSIGN(c.growth_span, header.u32(prefix + "rope.scaling.original_context_length", c.context_length));
  return {};
}

// No key says which layers have no rotary positions: llama.cpp leaves out every fourth.
Status read_smollm3(const GgufHeader&, const std::string&, ModelConfig& c) {
  constexpr uint32_t kInterval = 4;
  c.position = PositionKind::rope_interleaved;
  for (uint32_t layer = kInterval - 1; layer < c.n_layers; layer += kInterval)
    c.unturned_layers.push_back(layer);
  return {};
}

// As llama.cpp, without the window that the file may name: its converter writes it for models that attend to
// all positions, too.
Status read_phi3(const GgufHeader& header, const std::string& prefix, ModelConfig& c) {
  if (c.sliding_window != 0 && c.sliding_window < c.context_length) {
    header.warn(
        prefix + "attention.sliding_window",
        fmt::format("{} is not used, as in llama.cpp: attention is over all positions", c.sliding_window));
  }
  c.sliding_window = 0;
  return {};
}

Status read_qwen2_moe(const GgufHeader& header, const std::string& prefix, ModelConfig& c) {
  const uint32_t dense_width = c.d_ff;
  TIERD_TRY(read_experts(header, prefix, true, c));
  c.expert_weights_sum_to_one = false;
  TIERD_ASSIGN(c.shared_d_ff, header.u32(prefix + "expert_shared_feed_forward_length", dense_width));
  c.shared_gate = true;
  return {};
}

Status read_glm4_moe(const GgufHeader& header, const std::string& prefix, ModelConfig& c) {
  constexpr uint32_t kSigmoid = 2;
  c.dense_d_ff = c.d_ff;
  TIERD_TRY(read_experts(header, prefix, true, c));
  TIERD_ASSIGN(const uint32_t shared, header.u32(prefix + "expert_shared_count", 0));
  c.shared_d_ff = shared * c.d_ff;
  const std::string gating_key = prefix + "expert_gating_func";
  TIERD_ASSIGN(const uint32_t gating, header.u32(gating_key, kSigmoid));
  if (gating != 0 && gating != kSigmoid) {
    return header.error(Code::unsupported, gating_key,
                        fmt::format("found {}, supported is {} (sigmoid)", gating, kSigmoid));
  }
  c.router_score = RouterScore::sigmoid;
  c.router_correction = true;
  TIERD_ASSIGN(c.expert_scale, header.f32(prefix + "expert_weights_scale", 1.0f));
  if (c.expert_scale == 0) c.expert_scale = 1;
  TIERD_ASSIGN(c.expert_weights_sum_to_one, header.flag(prefix + "expert_weights_norm", false));
  TIERD_ASSIGN(const uint32_t dense, header.u32(prefix + "leading_dense_block_count", 0));
  for (uint32_t layer = 0; layer < std::min(dense, c.n_layers); ++layer) c.dense_layers.push_back(layer);
  return {};
}

Status read_gpt_oss(const GgufHeader& header, const std::string& prefix, ModelConfig& c) {
  constexpr float kLimit = 7;
  TIERD_TRY(read_experts(header, prefix, true, c));
  c.router_bias = true;
  c.attention_sinks = true;
  c.activation = Activation::swiglu_oai;
  c.activation_threshold = kLimit;
  // The publisher's configuration; llama.cpp rounds the bounds.
  c.rope.bounds_are_whole = false;
  return read_window_period(header, prefix, 2, c);
}

constexpr std::array<Family, 16> kFamilies = {{
    {"llama", kExpertKeys, read_llama},
    {"qwen2", {}, read_qwen2},
    {"qwen3", {}, read_qwen3},
    {"qwen3moe", kExpertKeys, read_qwen3_moe},
    {"olmoe", kOlmoeKeys, read_olmoe},
    {"olmo2", kWindowKeys, read_olmo2},
    {"gemma2", kGemmaKeys, read_gemma2},
    {"gemma3", kGemma3Keys, read_gemma3},
    {"granite", kGraniteKeys, read_granite},
    {"starcoder2", {}, read_starcoder2},
    {"phi3", {}, read_phi3},
    {"smollm3", {}, read_smollm3},
    {"mistral3", kMistral3Keys, read_mistral3},
    {"qwen2moe", kQwen2MoeKeys, read_qwen2_moe},
    {"glm4moe", kGlm4MoeKeys, read_glm4_moe},
    {"gpt-oss", kGptOssKeys, read_gpt_oss},
}};

}  // namespace

Status check_gguf_family(const GgufHeader& header, const std::string& architecture) {
  if (std::ranges::find(kFamilies, architecture, &Family::name) != kFamilies.end()) return {};
  std::vector<std::string_view> names;
  for (const Family& family : kFamilies) names.push_back(family.name);
  return header.error(Code::unsupported, "general.architecture",
                      fmt::format("\"{}\", supported are {}", architecture, fmt::join(names, ", ")));
}

Status read_gguf_family(const GgufHeader& header, ModelConfig& config) {
  const auto family = std::ranges::find(kFamilies, config.architecture, &Family::name);
  TIERD_CHECK(family != kFamilies.end());
  const std::string prefix = config.architecture + ".";
  const auto refused = [&](const std::string& key) {
    return header.error(Code::unsupported, key,
                        fmt::format("a {} with this setting is not supported", config.architecture));
  };
  const auto is_foreign = [&](std::string_view key) {
    return std::ranges::find(family->keys, key) == family->keys.end();
  };
  for (const std::string_view key : kChanging) {
    const std::string full = prefix + std::string(key);
    if (is_foreign(key) && header.has(full)) return refused(full);
  }
  for (const std::string_view key : kCounts) {
    const std::string full = prefix + std::string(key);
    TIERD_ASSIGN(const uint32_t count, header.u32(full, 0));
    if (is_foreign(key) && count != 0) return refused(full);
  }
  return family->read(header, prefix, config);
}

}  // namespace tierd
