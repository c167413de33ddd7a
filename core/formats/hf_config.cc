#include "core/formats/hf_config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/file.h"
#include "core/base/json_fields.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr uint32_t kMistralDefaultWindow = 4096;
constexpr uint32_t kQwen2DefaultFullLayers = 28;
constexpr uint32_t kOptPositionOffset = 2;
constexpr uint32_t kFalconDefaultContext = 2048;
constexpr float kAllRotary = 1.0f;

Status unless(bool supported, const JsonFields& f, const char* key, std::string_view detail) {
  if (supported) return {};
  return f.error(Code::unsupported, key, detail);
}

struct NamedActivation {
  std::string_view name;
  Activation activation;
};
constexpr std::array<NamedActivation, 8> kActivations = {{
    {"silu", Activation::silu},
    {"swish", Activation::silu},
    {"relu", Activation::relu},
    {"fatrelu", Activation::relu},
    {"relu2", Activation::relu_squared},
    {"gelu", Activation::gelu},
    {"gelu_new", Activation::gelu_tanh},
    {"gelu_pytorch_tanh", Activation::gelu_tanh},
}};

// Reads the activation, and FATReLU's threshold from the key that ProSparse and MiniCPM-S use.
Status read_activation(const JsonFields& f, const char* key, const char* fallback, ModelConfig& c) {
  TIERD_ASSIGN(const std::string name, f.text(key, fallback));
  std::string known;
  for (const NamedActivation& activation : kActivations) {
    known += (known.empty() ? "" : ", ") + std::string(activation.name);
    if (activation.name != name) continue;
    c.activation = activation.activation;
    if (name == "fatrelu") {
      TIERD_ASSIGN(c.activation_threshold, f.f32("hidden_act_param", 0.0f));
    }
    return {};
  }
  return f.error(Code::unsupported, key, fmt::format("\"{}\", supported are {}", name, known));
}

// Reads the sizes that every architecture has; head_dim is hidden_size / heads unless the file has it.
Status read_sizes(const JsonFields& f, ModelConfig& c) {
  TIERD_ASSIGN(c.n_layers, f.u32("num_hidden_layers"));
  TIERD_ASSIGN(c.d_model, f.u32("hidden_size"));
  TIERD_ASSIGN(c.n_heads, f.u32("num_attention_heads"));
  TIERD_ASSIGN(c.vocab_size, f.u32("vocab_size"));
  TIERD_ASSIGN(c.head_dim, f.u32("head_dim", 0));
  if (f.has("head_dim")) return {};
  if (c.n_heads == 0 || c.d_model % c.n_heads != 0) {
    return f.error("num_attention_heads",
                   fmt::format("found {}, which does not divide hidden_size {}", c.n_heads, c.d_model));
  }
  c.head_dim = c.d_model / c.n_heads;
  return {};
}

Status read_shape(const JsonFields& f, const char* ff_key, ModelConfig& c) {
  TIERD_TRY(read_sizes(f, c));
  TIERD_ASSIGN(c.n_kv_heads, f.u32("num_key_value_heads", c.n_heads));
  TIERD_ASSIGN(c.d_ff, f.u32(ff_key));
  TIERD_ASSIGN(c.context_length, f.u32("max_position_embeddings"));
  return {};
}

// Refuses fields that the supported types do not have: they mean another type of scaling.
Status check_rope_fields(const json& rope, const JsonFields& f) {
  constexpr std::array kKnown = {"rope_type",        "type",
                                 "rope_theta",       "partial_rotary_factor",
                                 "factor",           "low_freq_factor",
                                 "high_freq_factor", "original_max_position_embeddings"};
  for (const auto& [key, value] : rope.items()) {
    if (value.is_null() || std::ranges::find(kKnown, key) != kKnown.end()) continue;
    return f.error(
        Code::unsupported, key.c_str(),
        fmt::format("found {}, supported are {}", value.dump(-1, ' ', false, json::error_handler_t::replace),
                    fmt::join(kKnown, ", ")));
  }
  return {};
}

Status read_rope_scaling(const JsonFields& f, Rope& rope) {
  TIERD_ASSIGN(const std::string old_type, f.text("type", "default"));
  TIERD_ASSIGN(const std::string type, f.text("rope_type", old_type));
  if (type == "default") {
    TIERD_ASSIGN(const float factor, f.f32("factor", 1.0f));
    return unless(factor == 1.0f, f, "factor",
                  fmt::format("found {} without a rope_type; expected rope_type linear or llama3", factor));
  }
  if (type == "linear") {
    rope.scaling = RopeScaling::linear;
    TIERD_ASSIGN(rope.factor, f.f32("factor"));
    return {};
  }
  if (type == "llama3") {
    rope.scaling = RopeScaling::llama3;
    TIERD_ASSIGN(rope.factor, f.f32("factor"));
    TIERD_ASSIGN(rope.low_freq_factor, f.f32("low_freq_factor"));
    TIERD_ASSIGN(rope.high_freq_factor, f.f32("high_freq_factor"));
    TIERD_ASSIGN(rope.original_context, f.u32("original_max_position_embeddings"));
    return {};
  }
  return f.error(Code::unsupported, "rope_type",
                 fmt::format("\"{}\", supported are default, linear and llama3", type));
}

// Reads the rotary settings of layers with a window, which are not scaled.
Status read_local_rope(const JsonFields& by_kind, ModelConfig& c) {
  TIERD_ASSIGN(const JsonFields local, by_kind.object("sliding_attention"));
  TIERD_ASSIGN(const std::string type, local.text("rope_type", "default"));
  TIERD_TRY(unless(type == "default", local, "rope_type",
                   fmt::format("\"{}\", supported in layers with a window is default", type)));
  TIERD_ASSIGN(c.local_theta, local.f32("rope_theta"));
  return {};
}

// Reads the rotary settings: up to transformers 4 rope_theta at the top and rope_scaling, from 5 on all of
// them in rope_parameters. `rotary`: the share of a head that is rotated if the file does not say.
Status read_rope(const json& root, const JsonFields& f, float rotary, ModelConfig& c) {
  Rope& rope = c.rope;
  TIERD_ASSIGN(rope.theta, f.f32("rope_theta", rope.theta));
  TIERD_ASSIGN(float rotary_factor, f.f32("partial_rotary_factor", rotary));
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!f.has(key)) continue;
    TIERD_ASSIGN(JsonFields nested, f.object(key));
    const json* fields = &root.at(key);
    if (is_gemma(c) && nested.has("full_attention")) {  // by kind of layer
      TIERD_TRY(read_local_rope(nested, c));
      fields = &fields->at("full_attention");
      TIERD_ASSIGN(nested, nested.object("full_attention"));
    }
    TIERD_ASSIGN(rope.theta, nested.f32("rope_theta", rope.theta));
    TIERD_ASSIGN(rotary_factor, nested.f32("partial_rotary_factor", rotary_factor));
    TIERD_TRY(read_rope_scaling(nested, rope));
    TIERD_TRY(check_rope_fields(*fields, nested));
  }
  TIERD_TRY(unless(rotary_factor > 0 && rotary_factor <= 1, f, "partial_rotary_factor",
                   "expected more than 0 and at most 1"));
  if (rotary_factor != kAllRotary)
    rope.dim = static_cast<uint32_t>(static_cast<float>(c.head_dim) * rotary_factor);
  return {};
}

// Reads layer_types, which transformers writes from 4.5x on.
Status read_layer_types(const json& root, const JsonFields& f, ModelConfig& c) {
  const auto types = root.find("layer_types");
  if (types == root.end() || !types->is_array() || types->empty()) return {};
  TIERD_TRY(unless(types->size() == c.n_layers, f, "layer_types",
                   fmt::format("{} layers, expected {}", types->size(), c.n_layers)));
  c.global_layers.clear();
  for (uint32_t layer = 0; layer < c.n_layers; ++layer) {
    const json& type = (*types)[layer];
    if (type == "full_attention") c.global_layers.push_back(layer);
    TIERD_TRY(unless(type == "full_attention" || type == "sliding_attention", f, "layer_types",
                     fmt::format("{}, supported are full_attention and sliding_attention",
                                 type.dump(-1, ' ', false, json::error_handler_t::replace))));
  }
  if (c.global_layers.size() == c.n_layers) c.sliding_window = 0;
  if (c.sliding_window == 0) c.global_layers.clear();
  return {};
}

// Sets the layers without a window, in a configuration without layer_types: of each `period` the last.
void set_window_period(uint32_t period, ModelConfig& c) {
  if (c.sliding_window == 0 || period == 0) return;
  for (uint32_t layer = period - 1; layer < c.n_layers; layer += period) c.global_layers.push_back(layer);
}

Status read_qwen2_window(const JsonFields& f, ModelConfig& c) {
  TIERD_ASSIGN(const bool use_window, f.flag("use_sliding_window", false));
  if (!use_window) return {};
  TIERD_ASSIGN(const uint32_t window, f.u32("sliding_window", kMistralDefaultWindow));
  TIERD_ASSIGN(const uint32_t full_layers, f.u32("max_window_layers", kQwen2DefaultFullLayers));
  c.sliding_window = full_layers < c.n_layers ? window : 0;
  for (uint32_t layer = 0; layer < full_layers && c.sliding_window != 0; ++layer)
    c.global_layers.push_back(layer);
  return {};
}

// Reads a model whose every layer is a mixture, with experts of one width. Versions of transformers differ in
// the key for their number, so both are accepted.
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

Status read_mixtral(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_experts(f, "num_local_experts", "intermediate_size", c));
  c.expert_weights_sum_to_one = true;
  TIERD_ASSIGN(c.sliding_window, f.u32("sliding_window", 0));
  return {};
}

Status read_qwen3_moe(const json& root, const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_experts(f, "num_experts", "moe_intermediate_size", c));
  TIERD_ASSIGN(c.expert_weights_sum_to_one, f.flag("norm_topk_prob", false));
  TIERD_ASSIGN(const uint32_t step, f.u32("decoder_sparse_step", 1));
  TIERD_TRY(unless(step == 1, f, "decoder_sparse_step",
                   fmt::format("{}, supported is 1 (every layer is a mixture)", step)));
  const auto dense = root.find("mlp_only_layers");
  TIERD_TRY(unless(dense == root.end() || dense->empty(), f, "mlp_only_layers",
                   "found layers without experts, supported is an empty list"));
  c.qk_norm = true;
  TIERD_ASSIGN(const bool bias, f.flag("attention_bias", false));
  c.qkv_bias = c.o_bias = bias;
  return read_qwen2_window(f, c);
}

Status read_qwen3(const JsonFields& f, ModelConfig& c) {
  c.qk_norm = true;
  TIERD_ASSIGN(c.qkv_bias, f.flag("attention_bias", false));
  c.o_bias = c.qkv_bias;
  return read_qwen2_window(f, c);
}

Status read_granite(const JsonFields& f, ModelConfig& c) {
  TIERD_ASSIGN(c.qkv_bias, f.flag("attention_bias", false));
  TIERD_ASSIGN(c.ffn_bias, f.flag("mlp_bias", false));
  c.o_bias = c.qkv_bias;
  TIERD_ASSIGN(c.embed_scale, f.f32("embedding_multiplier", 1.0f));
  TIERD_ASSIGN(c.residual_scale, f.f32("residual_multiplier", 1.0f));
  TIERD_ASSIGN(c.attention_scale, f.f32("attention_multiplier", 1.0f));
  TIERD_ASSIGN(const float divisor, f.f32("logits_scaling", 1.0f));
  TIERD_TRY(unless(divisor > 0, f, "logits_scaling", "expected a positive number"));
  c.logit_scale = 1 / divisor;
  return {};
}

Status read_olmo2(const JsonFields& f, ModelConfig& c) {
  TIERD_ASSIGN(c.qkv_bias, f.flag("attention_bias", false));
  c.o_bias = c.qkv_bias;
  c.qk_norm = c.qk_norm_wide = true;
  c.attn_norm = c.ffn_norm = false;
  c.post_norms = true;
  return {};
}

// Gemma 2 and the text models of Gemma 3.
Status read_gemma(const JsonFields& f, ModelConfig& c) {
  const bool third = c.architecture == "gemma3_text";
  const char* const activation = f.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  TIERD_TRY(read_activation(f, activation, "gelu_pytorch_tanh", c));
  TIERD_ASSIGN(c.tied_embeddings, f.flag("tie_word_embeddings", true));
  TIERD_ASSIGN(c.qkv_bias, f.flag("attention_bias", false));
  c.o_bias = c.qkv_bias;
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

Status read_olmoe(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_experts(f, "num_experts", "intermediate_size", c));
  TIERD_ASSIGN(c.expert_weights_sum_to_one, f.flag("norm_topk_prob", false));
  TIERD_ASSIGN(c.qkv_clip, f.f32("clip_qkv", 0.0f));
  c.qk_norm = c.qk_norm_wide = true;
  TIERD_ASSIGN(const bool bias, f.flag("attention_bias", false));
  c.qkv_bias = c.o_bias = bias;
  return {};
}

Status read_llama_family(const json& root, const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_shape(f, "intermediate_size", c));
  TIERD_TRY(read_rope(root, f, kAllRotary, c));
  TIERD_TRY(unless(c.rope.dim == 0, f, "partial_rotary_factor", "only 1 is supported"));
  c.norm = Norm::rms;
  TIERD_ASSIGN(c.norm_eps, f.f32("rms_norm_eps", 1e-6f));
  TIERD_TRY(read_activation(f, "hidden_act", "silu", c));
  TIERD_ASSIGN(c.tied_embeddings, f.flag("tie_word_embeddings", false));
  c.position = PositionKind::rope_half;
  if (c.architecture == "llama") {
    TIERD_ASSIGN(c.qkv_bias, f.flag("attention_bias", false));
    TIERD_ASSIGN(c.ffn_bias, f.flag("mlp_bias", false));
    c.o_bias = c.qkv_bias;
  } else if (c.architecture == "mistral") {
    // An absent key means the default; null means no window.
    const bool none = root.contains("sliding_window") && !f.has("sliding_window");
    TIERD_ASSIGN(c.sliding_window, f.u32("sliding_window", none ? 0 : kMistralDefaultWindow));
  } else if (c.architecture == "qwen2") {
    c.qkv_bias = true;
    TIERD_TRY(read_qwen2_window(f, c));
  } else if (c.architecture == "mixtral") {
    TIERD_TRY(read_mixtral(f, c));
  } else if (c.architecture == "qwen3_moe") {
    TIERD_TRY(read_qwen3_moe(root, f, c));
  } else if (c.architecture == "qwen3") {
    TIERD_TRY(read_qwen3(f, c));
  } else if (c.architecture == "granite") {
    TIERD_TRY(read_granite(f, c));
  } else if (c.architecture == "olmo2") {
    TIERD_TRY(read_olmo2(f, c));
  } else if (is_gemma(c)) {
    TIERD_TRY(read_gemma(f, c));
  } else {
    TIERD_TRY(read_olmoe(f, c));
  }
  return read_layer_types(root, f, c);
}

Status read_opt(const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_shape(f, "ffn_dim", c));
  c.norm = Norm::layer;
  c.norm_bias = true;
  c.gated = false;
  c.position = PositionKind::learned;
  c.position_offset = kOptPositionOffset;
  TIERD_TRY(read_activation(f, "activation_function", "relu", c));
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
Status read_layer_norm_family(const json& root, const JsonFields& f, const char* eps_key, float rotary,
                              ModelConfig& c) {
  c.norm = Norm::layer;
  c.norm_bias = true;
  c.gated = false;
  c.position = PositionKind::rope_half;
  TIERD_ASSIGN(c.norm_eps, f.f32(eps_key, c.norm_eps));
  return read_rope(root, f, rotary, c);
}

Status read_falcon(const json& root, const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_sizes(f, c));
  TIERD_TRY(read_layer_norm_family(root, f, "layer_norm_epsilon", kAllRotary, c));
  TIERD_ASSIGN(c.d_ff, f.u32("ffn_hidden_size", 4 * c.d_model));
  TIERD_ASSIGN(c.context_length, f.u32("max_position_embeddings", kFalconDefaultContext));
  TIERD_TRY(read_activation(f, "activation", "gelu", c));
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

Status read_persimmon(const json& root, const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_shape(f, "intermediate_size", c));
  TIERD_TRY(unless(c.n_kv_heads == c.n_heads, f, "num_key_value_heads",
                   "supported is the value of num_attention_heads"));
  TIERD_TRY(read_layer_norm_family(root, f, "layer_norm_eps", 0.5f, c));
  TIERD_TRY(read_activation(f, "hidden_act", "relu2", c));
  TIERD_ASSIGN(c.tied_embeddings, f.flag("tie_word_embeddings", false));
  TIERD_ASSIGN(c.qk_norm, f.flag("qk_layernorm", true));
  c.qkv_bias = c.o_bias = c.ffn_bias = true;
  return {};
}

Status read_phi(const json& root, const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_shape(f, "intermediate_size", c));
  TIERD_TRY(read_layer_norm_family(root, f, "layer_norm_eps", 0.5f, c));
  TIERD_TRY(read_activation(f, "hidden_act", "gelu_new", c));
  TIERD_ASSIGN(c.tied_embeddings, f.flag("tie_word_embeddings", false));
  TIERD_ASSIGN(c.qk_norm, f.flag("qk_layernorm", false));
  c.parallel = true;
  c.ffn_norm = false;
  c.qkv_bias = c.o_bias = c.ffn_bias = c.head_bias = true;
  return unless(!c.tied_embeddings, f, "tie_word_embeddings", "a head that is the embedding has no bias");
}

Status read_starcoder2(const json& root, const JsonFields& f, ModelConfig& c) {
  TIERD_TRY(read_shape(f, "intermediate_size", c));
  TIERD_TRY(read_layer_norm_family(root, f, "norm_epsilon", kAllRotary, c));
  TIERD_TRY(read_activation(f, "hidden_act", "gelu_pytorch_tanh", c));
  TIERD_ASSIGN(c.tied_embeddings, f.flag("tie_word_embeddings", true));
  TIERD_ASSIGN(c.qkv_bias, f.flag("use_bias", true));
  c.o_bias = c.ffn_bias = c.qkv_bias;
  TIERD_ASSIGN(c.sliding_window, f.u32("sliding_window", 0));
  return read_layer_types(root, f, c);
}

}  // namespace

bool is_gemma(const ModelConfig& config) {
  return config.architecture == "gemma2" || config.architecture == "gemma3_text";
}

Result<ModelConfig> read_hf_config(const std::string& path) {
  TIERD_ASSIGN(const json root, read_json_file(path, kMaxConfigBytes));
  TIERD_ASSIGN(const JsonFields f, JsonFields::of(root, path));

  ModelConfig c;
  TIERD_ASSIGN(c.architecture, f.text("model_type"));
  TIERD_TRY(unless(!f.has("quantization_config"), f, "quantization_config",
                   "quantized checkpoints are not supported; convert the model to BF16, F16 or GGUF"));
  constexpr std::array kLlamaFamily = {"llama", "mistral", "qwen2",   "qwen3",  "mixtral",    "qwen3_moe",
                                       "olmoe", "olmo2",   "granite", "gemma2", "gemma3_text"};
  if (std::find(kLlamaFamily.begin(), kLlamaFamily.end(), c.architecture) != kLlamaFamily.end()) {
    TIERD_TRY(read_llama_family(root, f, c));
  } else if (c.architecture == "opt") {
    TIERD_TRY(read_opt(f, c));
  } else if (c.architecture == "falcon") {
    TIERD_TRY(read_falcon(root, f, c));
  } else if (c.architecture == "persimmon") {
    TIERD_TRY(read_persimmon(root, f, c));
  } else if (c.architecture == "phi") {
    TIERD_TRY(read_phi(root, f, c));
  } else if (c.architecture == "starcoder2") {
    TIERD_TRY(read_starcoder2(root, f, c));
  } else {
    return f.error(Code::unsupported, "model_type",
                   fmt::format("\"{}\", supported are {}, opt, falcon, persimmon, phi and starcoder2",
                               c.architecture, fmt::join(kLlamaFamily, ", ")));
  }
  TIERD_TRY(validate(c, path));
  return c;
}

}  // namespace tierd
