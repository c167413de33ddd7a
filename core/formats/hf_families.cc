#include "core/formats/hf_families.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "core/formats/hf_fields.h"
#include "core/formats/hf_mixtures.h"

namespace tierd {
namespace {

constexpr uint32_t kMistralDefaultWindow = 4096;
constexpr uint32_t kOptPositionOffset = 2;
constexpr uint32_t kFalconDefaultContext = 2048;
constexpr float kAllRotary = 1.0f;

// Reads the biases of attention, which one key switches.
Status read_attention_bias(const JsonFields& f, ModelConfig& c) {
  TIERD_ASSIGN(c.qkv_bias, f.flag("attention_bias", false));
  c.o_bias = c.qkv_bias;
  return {};
}

Status read_llama(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_hf_llama_like(f, c));
  TIERD_ASSIGN(c.ffn_bias, f.flag("mlp_bias", false));
  return read_attention_bias(f, c);
}

Status read_mistral(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_hf_llama_like(f, c));
  // An absent key means the default; null means no window.
  const bool none = f.member("sliding_window").ok() && !f.has("sliding_window");
  TIERD_ASSIGN(c.sliding_window, f.u32("sliding_window", none ? 0 : kMistralDefaultWindow));
  return {};
}

// Ministral 3: queries grow with their position, by a field of the rotary settings.
Status read_ministral3(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_hf_llama_like(f, c));
  TIERD_ASSIGN(c.sliding_window, f.u32("sliding_window", 0));
  return {};
}

Status read_qwen2(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_hf_llama_like(f, c));
  c.qkv_bias = true;
  return read_qwen2_window(f, c);
}

Status read_qwen3(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_hf_llama_like(f, c));
  c.qk_norm = true;
  TIERD_TRY(read_attention_bias(f, c));
  return read_qwen2_window(f, c);
}

Status read_granite(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_llama(f, c));
  TIERD_ASSIGN(c.embed_scale, f.f32("embedding_multiplier", 1.0f));
  TIERD_ASSIGN(c.residual_scale, f.f32("residual_multiplier", 1.0f));
  TIERD_ASSIGN(c.attention_scale, f.f32("attention_multiplier", 1.0f));
  TIERD_ASSIGN(const float divisor, f.f32("logits_scaling", 1.0f));
  TIERD_TRY(unless(divisor > 0, f, "logits_scaling", "expected a positive number"));
  c.logit_scale = 1 / divisor;
  return {};
}

Status read_olmo2(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_hf_llama_like(f, c));
  TIERD_TRY(read_attention_bias(f, c));
  c.qk_norm = c.qk_norm_wide = true;
  c.attn_norm = c.ffn_norm = false;
  c.post_norms = true;
  return {};
}

// Gemma 2 and the text models of Gemma 3.
Status read_gemma(const JsonFields& f, ModelConfig& c) {
  const bool third = c.architecture == "gemma3_text";
  TIERD_TRY(read_hf_llama_like(f, c));
  const char* const activation = f.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  TIERD_TRY(read_hf_activation(f, activation, "gelu_pytorch_tanh", c));
  TIERD_ASSIGN(c.tied_embeddings, f.flag("tie_word_embeddings", true));
  TIERD_TRY(read_attention_bias(f, c));
  c.qk_norm = third;
  c.post_norms = true;
  c.embed_scale = std::sqrt(static_cast<float>(c.d_model));
  TIERD_ASSIGN(const float scalar, f.f32("query_pre_attn_scalar", 256.0f));
  TIERD_TRY(unless(scalar > 0, f, "query_pre_attn_scalar", "expected a positive number"));
  c.attention_scale = 1 / std::sqrt(scalar);
  TIERD_ASSIGN(c.attention_cap, f.f32("attn_logit_softcapping", 0.0f));
  TIERD_ASSIGN(c.logit_cap, f.f32("final_logit_softcapping", 0.0f));
  TIERD_ASSIGN(c.sliding_window, f.u32("sliding_window", 4096));
  TIERD_ASSIGN(const bool both_ways, f.flag("use_bidirectional_attention", false));
  TIERD_TRY(unless(!both_ways, f, "use_bidirectional_attention", "only false is supported"));
  if (third && c.local_theta == 0) {
    TIERD_ASSIGN(c.local_theta, f.f32("rope_local_base_freq", 10000.0f));
  }
  const char* const pattern =
      f.has("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
  TIERD_ASSIGN(const uint32_t period, f.u32(pattern, third ? 6 : 2));
  set_window_period(period, c);
  return {};
}

// Phi 3 and 4: q, k and v are one tensor, gate and up another one.
Status read_phi3(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_hf_llama_like(f, c, kAllRotary));
  TIERD_ASSIGN(c.sliding_window, f.u32("sliding_window", 0));
  TIERD_TRY(read_attention_bias(f, c));
  return {};
}

// SmolLM3: some layers have no rotary positions.
Status read_smollm3(const JsonFields& f, ModelConfig& c) {
  constexpr uint32_t kUsualInterval = 4;
  TIERD_TRY(read_llama(f, c));
  TIERD_ASSIGN(c.tied_embeddings, f.flag("tie_word_embeddings", true));
  TIERD_ASSIGN(const uint32_t interval, f.u32("no_rope_layer_interval", kUsualInterval));
  TIERD_ASSIGN(const std::vector<uint32_t> turned, f.u32_list("no_rope_layers"));
  TIERD_TRY(unless(turned.empty() || turned.size() >= c.n_layers, f, "no_rope_layers",
                   fmt::format("{} layers, expected at least {}", turned.size(), c.n_layers)));
  for (uint32_t layer = 0; layer < c.n_layers; ++layer) {
    const bool turns = turned.empty() ? interval == 0 || (layer + 1) % interval != 0 : turned[layer] != 0;
    if (!turns) c.unturned_layers.push_back(layer);
  }
  TIERD_ASSIGN(const bool use_window, f.flag("use_sliding_window", false));
  if (!use_window) return {};
  TIERD_ASSIGN(c.sliding_window, f.u32("sliding_window", 0));
  return {};
}

Status read_opt(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_hf_shape(f, "ffn_dim", c));
  c.norm = Norm::layer;
  c.norm_bias = true;
  c.gated = false;
  c.position = PositionKind::learned;
  c.position_offset = kOptPositionOffset;
  TIERD_TRY(read_hf_activation(f, "activation_function", "relu", c));
  TIERD_ASSIGN(c.tied_embeddings, f.flag("tie_word_embeddings", true));
  TIERD_ASSIGN(c.qkv_bias, f.flag("enable_bias", true));
  c.o_bias = c.ffn_bias = c.qkv_bias;

  TIERD_ASSIGN(const bool norm_before, f.flag("do_layer_norm_before", true));
  TIERD_TRY(unless(norm_before, f, "do_layer_norm_before", "only true is supported"));
  TIERD_ASSIGN(const uint32_t embed_dim, f.u32("word_embed_proj_dim", c.d_model));
  TIERD_TRY(unless(embed_dim == c.d_model, f, "word_embed_proj_dim",
                   fmt::format("{}, supported is the value of hidden_size, {}", embed_dim, c.d_model)));
  TIERD_ASSIGN(const bool affine, f.flag("layer_norm_elementwise_affine", true));
  TIERD_TRY(unless(affine, f, "layer_norm_elementwise_affine", "only true is supported"));
  TIERD_ASSIGN(const bool no_final_norm, f.flag("_remove_final_layer_norm", false));
  return unless(!no_final_norm, f, "_remove_final_layer_norm", "only false is supported");
}

// Reads the settings of Falcon, Persimmon and Phi: layer norms with bias, one projection up, one down.
Status read_layer_norm_family(const JsonFields& f, const char* eps_key, float rotary, ModelConfig& c) {
  c.norm = Norm::layer;
  c.norm_bias = true;
  c.gated = false;
  c.position = PositionKind::rope_half;
  TIERD_ASSIGN(c.norm_eps, f.f32(eps_key, c.norm_eps));
  return read_hf_rope(f, rotary, c);
}

Status read_falcon(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_hf_sizes(f, c));
  TIERD_TRY(read_layer_norm_family(f, "layer_norm_epsilon", kAllRotary, c));
  TIERD_ASSIGN(c.d_ff, f.u32("ffn_hidden_size", 4 * c.d_model));
  TIERD_ASSIGN(c.context_length, f.u32("max_position_embeddings", kFalconDefaultContext));
  TIERD_TRY(read_hf_activation(f, "activation", "gelu", c));
  TIERD_ASSIGN(c.tied_embeddings, f.flag("tie_word_embeddings", true));
  TIERD_ASSIGN(c.qkv_bias, f.flag("bias", false));
  c.o_bias = c.ffn_bias = c.qkv_bias;
  TIERD_ASSIGN(const bool alibi, f.flag("alibi", false));
  TIERD_TRY(unless(!alibi, f, "alibi", "only rotary positions are supported"));

  TIERD_ASSIGN(const bool grouped, f.flag("new_decoder_architecture", false));
  TIERD_ASSIGN(const bool multi_query, f.flag("multi_query", true));
  TIERD_ASSIGN(c.parallel, f.flag("parallel_attn", true));
  TIERD_TRY(unless(c.parallel || !grouped, f, "parallel_attn",
                   "supported is true where new_decoder_architecture is true"));
  c.n_kv_heads = multi_query ? 1 : c.n_heads;
  if (grouped) {
    TIERD_ASSIGN(c.n_kv_heads, f.u32("num_kv_heads", c.n_heads));
  }
  TIERD_ASSIGN(const uint32_t norms, f.u32("num_ln_in_parallel_attn", grouped ? 2 : 1));
  c.ffn_norm = !c.parallel || (grouped && norms == 2);
  return {};
}

Status read_persimmon(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_hf_shape(f, "intermediate_size", c));
  TIERD_TRY(unless(c.n_kv_heads == c.n_heads, f, "num_key_value_heads",
                   "supported is the value of num_attention_heads"));
  TIERD_TRY(read_layer_norm_family(f, "layer_norm_eps", 0.5f, c));
  TIERD_TRY(read_hf_activation(f, "hidden_act", "relu2", c));
  TIERD_ASSIGN(c.tied_embeddings, f.flag("tie_word_embeddings", false));
  TIERD_ASSIGN(c.qk_norm, f.flag("qk_layernorm", true));
  c.qkv_bias = c.o_bias = c.ffn_bias = true;
  return {};
}

Status read_phi(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_hf_shape(f, "intermediate_size", c));
  TIERD_TRY(read_layer_norm_family(f, "layer_norm_eps", 0.5f, c));
  TIERD_TRY(read_hf_activation(f, "hidden_act", "gelu_new", c));
  TIERD_ASSIGN(c.tied_embeddings, f.flag("tie_word_embeddings", false));
  TIERD_ASSIGN(c.qk_norm, f.flag("qk_layernorm", false));
  c.parallel = true;
  c.ffn_norm = false;
  c.qkv_bias = c.o_bias = c.ffn_bias = c.head_bias = true;
  return unless(!c.tied_embeddings, f, "tie_word_embeddings", "a head that is the embedding has no bias");
}

Status read_starcoder2(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_hf_shape(f, "intermediate_size", c));
  TIERD_TRY(read_layer_norm_family(f, "norm_epsilon", kAllRotary, c));
  TIERD_TRY(read_hf_activation(f, "hidden_act", "gelu_pytorch_tanh", c));
  TIERD_ASSIGN(c.tied_embeddings, f.flag("tie_word_embeddings", true));
  TIERD_ASSIGN(c.qkv_bias, f.flag("use_bias", true));
  c.o_bias = c.ffn_bias = c.qkv_bias;
  TIERD_ASSIGN(c.sliding_window, f.u32("sliding_window", 0));
  return {};
}

constexpr std::array<HfFamily, 22> kHfFamilies = {{
    {"llama", read_llama},
    {"mistral", read_mistral},
    {"ministral3", read_ministral3},
    {"qwen2", read_qwen2},
    {"qwen3", read_qwen3},
    {"phi3", read_phi3},
    {"smollm3", read_smollm3},
    {"granite", read_granite},
    {"olmo2", read_olmo2},
    {"gemma2", read_gemma, 1},
    {"gemma3_text", read_gemma, 1},
    {"starcoder2", read_starcoder2},
    {"mixtral", read_hf_mixtral},
    {"qwen2_moe", read_hf_qwen2_moe},
    {"qwen3_moe", read_hf_qwen3_moe},
    {"olmoe", read_hf_olmoe},
    {"glm4_moe", read_hf_glm4_moe, 0, true},
    {"gpt_oss", read_hf_gpt_oss},
    {"opt", read_opt},
    {"falcon", read_falcon},
    {"persimmon", read_persimmon},
    {"phi", read_phi},
}};

}  // namespace

Status read_hf_llama_like(const JsonFields& f, ModelConfig& c, std::optional<float> rotary) {
  TIERD_TRY(read_hf_shape(f, "intermediate_size", c));
  TIERD_TRY(read_hf_rope(f, rotary.value_or(kAllRotary), c));
  TIERD_TRY(unless(rotary || c.rope.dim == 0, f, "partial_rotary_factor", "only 1 is supported"));
  c.norm = Norm::rms;
  TIERD_ASSIGN(c.norm_eps, f.f32("rms_norm_eps", 1e-6f));
  TIERD_TRY(read_hf_activation(f, "hidden_act", "silu", c));
  TIERD_ASSIGN(c.tied_embeddings, f.flag("tie_word_embeddings", false));
  c.position = PositionKind::rope_half;
  return {};
}

Status read_qwen2_window(const JsonFields& f, ModelConfig& c) {
  constexpr uint32_t kQwen2DefaultFullLayers = 28;
  TIERD_ASSIGN(const bool use_window, f.flag("use_sliding_window", false));
  if (!use_window) return {};
  TIERD_ASSIGN(const uint32_t window, f.u32("sliding_window", kMistralDefaultWindow));
  TIERD_ASSIGN(const uint32_t full_layers, f.u32("max_window_layers", kQwen2DefaultFullLayers));
  c.sliding_window = full_layers < c.n_layers ? window : 0;
  for (uint32_t layer = 0; layer < full_layers && c.sliding_window != 0; ++layer)
    c.global_layers.push_back(layer);
  return {};
}

const HfFamily* find_hf_family(std::string_view model_type) {
  const auto found = std::ranges::find(kHfFamilies, model_type, &HfFamily::model_type);
  return found == kHfFamilies.end() ? nullptr : &*found;
}

std::string hf_family_names() {
  std::string names;
  for (const HfFamily& family : kHfFamilies)
    names += (names.empty() ? "" : ", ") + std::string(family.model_type);
  return names;
}

}  // namespace tierd
