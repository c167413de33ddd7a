#include "core/formats/hf_fields.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace tierd {
namespace {

using nlohmann::json;

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
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

// The fields of each type of scaling beside those that all have.
struct RopeType {
  std::string_view name;
  std::string_view fields;  // separated by spaces
};
constexpr std::string_view kAllRopeFields = "rope_type type rope_theta partial_rotary_factor factor";
constexpr std::array<RopeType, 7> kRopeTypes = {{
    {"default", ""},
    {"linear", ""},
    {"dynamic", "original_max_position_embeddings"},
    {"llama3", "low_freq_factor high_freq_factor original_max_position_embeddings"},
    {"yarn",
     "original_max_position_embeddings beta_fast beta_slow mscale mscale_all_dim truncate attention_factor "
     "llama_4_scaling_beta max_position_embeddings"},
    {"longrope", "original_max_position_embeddings short_factor long_factor attention_factor"},
    {"su", "original_max_position_embeddings short_factor long_factor attention_factor"},
}};

bool has_word(std::string_view words, std::string_view word) {
  for (size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

// Refuses fields that the type does not have: they mean another type of scaling.
Status check_rope_fields(const json& rope, const JsonFields& f, const RopeType& type) {
  for (const auto& [field, value] : rope.items()) {
    if (value.is_null() || has_word(kAllRopeFields, field) || has_word(type.fields, field)) continue;
    return f.error(Code::unsupported, field,
                   fmt::format("found {}, supported in rope_type {} are {} {}", text_of(value), type.name,
                               kAllRopeFields, type.fields));
  }
  return {};
}

Result<std::vector<float>> read_floats(const JsonFields& f, const char* key) {
  std::vector<float> values;
  TIERD_TRY(f.read_each(key, [&](const json& value, size_t) -> Status {
    TIERD_ASSIGN(values.emplace_back(), f.as_float(key, value));
    return {};
  }));
  return values;
}

// The context of the first training: of the scaling's fields, else of the model's (Phi 3).
Result<uint32_t> original_context(const JsonFields& root, const JsonFields& f) {
  constexpr const char* kKey = "original_max_position_embeddings";
  TIERD_ASSIGN(const uint32_t context, root.u32("max_position_embeddings", 0));
  TIERD_ASSIGN(const uint32_t of_model, root.u32(kKey, context));
  return f.u32(kKey, of_model);
}

// Where a file has no factor, it is how much longer the context is than the original one.
Result<float> factor_of(const JsonFields& root, const JsonFields& f, const Rope& rope) {
  TIERD_ASSIGN(const uint32_t context, root.u32("max_position_embeddings"));
  return f.f32("factor",
               static_cast<float>(context) / static_cast<float>(std::max(1U, rope.original_context)));
}

Status read_yarn(const JsonFields& root, const JsonFields& f, Rope& rope) {
  rope.scaling = RopeScaling::yarn;
  TIERD_ASSIGN(rope.original_context, original_context(root, f));
  TIERD_ASSIGN(rope.factor, factor_of(root, f, rope));
  TIERD_ASSIGN(rope.beta_fast, f.f32("beta_fast", rope.beta_fast));
  TIERD_ASSIGN(rope.beta_slow, f.f32("beta_slow", rope.beta_slow));
  TIERD_ASSIGN(rope.bounds_are_whole, f.flag("truncate", true));
  TIERD_ASSIGN(const float of_dims, f.f32("mscale", 0.0f));
  TIERD_ASSIGN(const float of_all, f.f32("mscale_all_dim", 0.0f));
  const bool both = of_dims != 0 && of_all != 0;
  const float usual = both ? yarn_magnitude(rope.factor, of_dims) / yarn_magnitude(rope.factor, of_all)
                           : yarn_magnitude(rope.factor);
  TIERD_ASSIGN(rope.magnitude, f.f32("attention_factor", usual));
  return {};
}

Status read_longrope(const JsonFields& root, const JsonFields& f, Rope& rope) {
  rope.scaling = RopeScaling::longrope;
  TIERD_ASSIGN(rope.original_context, original_context(root, f));
  TIERD_ASSIGN(rope.factor, factor_of(root, f, rope));
  TIERD_ASSIGN(rope.magnitude,
               f.f32("attention_factor", longrope_magnitude(rope.factor, rope.original_context)));
  TIERD_ASSIGN(rope.divisors, read_floats(f, "short_factor"));
  TIERD_ASSIGN(rope.long_divisors, read_floats(f, "long_factor"));
  return {};
}

Status read_llama3(const JsonFields& f, Rope& rope) {
  rope.scaling = RopeScaling::llama3;
  TIERD_ASSIGN(rope.factor, f.f32("factor"));
  TIERD_ASSIGN(rope.low_freq_factor, f.f32("low_freq_factor"));
  TIERD_ASSIGN(rope.high_freq_factor, f.f32("high_freq_factor"));
  TIERD_ASSIGN(rope.original_context, f.u32("original_max_position_embeddings"));
  return {};
}

// Returns the type; a factor without a type means linear, as in the first models with one.
Result<RopeType> rope_type(const JsonFields& f) {
  TIERD_ASSIGN(const std::string old_name, f.text("type", f.has("factor") ? "linear" : "default"));
  TIERD_ASSIGN(const std::string name, f.text("rope_type", old_name));
  const auto type = std::ranges::find(kRopeTypes, name, &RopeType::name);
  if (type != kRopeTypes.end()) return *type;
  return f.error(
      Code::unsupported, "rope_type",
      fmt::format("\"{}\", supported are default, linear, dynamic, llama3, yarn and longrope", name));
}

Status read_rope_scaling(const JsonFields& root, const JsonFields& f, std::string_view type, Rope& rope) {
  if (type == "default") return {};
  if (type == "llama3") return read_llama3(f, rope);
  if (type == "yarn") return read_yarn(root, f, rope);
  if (type == "longrope" || type == "su") return read_longrope(root, f, rope);
  rope.scaling = type == "linear" ? RopeScaling::linear : RopeScaling::dynamic;
  TIERD_ASSIGN(rope.factor, f.f32("factor"));
  if (type == "dynamic") {
    TIERD_ASSIGN(rope.original_context, root.u32("max_position_embeddings"));
  }
  return {};
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

}  // namespace

Status unless(bool supported, const JsonFields& f, const char* key, std::string_view detail) {
  if (supported) return {};
  return f.error(Code::unsupported, key, detail);
}

Status read_hf_activation(const JsonFields& f, const char* key, const char* fallback, ModelConfig& c) {
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

Status read_hf_sizes(const JsonFields& f, ModelConfig& c) {
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

Status read_hf_shape(const JsonFields& f, const char* ff_key, ModelConfig& c) {
  TIERD_TRY(read_hf_sizes(f, c));
  TIERD_ASSIGN(c.n_kv_heads, f.u32("num_key_value_heads", c.n_heads));
  TIERD_ASSIGN(c.d_ff, f.u32(ff_key));
  TIERD_ASSIGN(c.context_length, f.u32("max_position_embeddings"));
  return {};
}

Status read_hf_rope(const JsonFields& f, float rotary, ModelConfig& c) {
  Rope& rope = c.rope;
  TIERD_ASSIGN(rope.theta, f.f32("rope_theta", rope.theta));
  TIERD_ASSIGN(float rotary_factor, f.f32("partial_rotary_factor", rotary));
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!f.has(key)) continue;
    TIERD_ASSIGN(JsonFields nested, f.object(key));
    TIERD_ASSIGN(const json* fields, f.member(key));
    if (nested.has("full_attention")) {  // by kind of layer
      TIERD_TRY(read_local_rope(nested, c));
      TIERD_ASSIGN(fields, nested.member("full_attention"));
      TIERD_ASSIGN(nested, nested.object("full_attention"));
    }
    TIERD_ASSIGN(const RopeType type, rope_type(nested));
    TIERD_TRY(check_rope_fields(*fields, nested, type));
    TIERD_ASSIGN(rope.theta, nested.f32("rope_theta", rope.theta));
    TIERD_ASSIGN(rotary_factor, nested.f32("partial_rotary_factor", rotary_factor));
    TIERD_TRY(read_rope_scaling(f, nested, type.name, rope));
    TIERD_ASSIGN(c.query_growth, nested.f32("llama_4_scaling_beta", 0.0f));
    if (c.query_growth != 0) c.growth_span = rope.original_context;
  }
  TIERD_TRY(unless(rotary_factor > 0 && rotary_factor <= 1, f, "partial_rotary_factor",
                   "expected more than 0 and at most 1"));
  if (rotary_factor != 1.0f) rope.dim = static_cast<uint32_t>(static_cast<float>(c.head_dim) * rotary_factor);
  return {};
}

Status read_hf_layer_types(const JsonFields& f, ModelConfig& c) {
  if (!f.has("layer_types")) return {};
  TIERD_ASSIGN(const json* types, f.member("layer_types"));
  if (!types->is_array() || types->empty()) return {};
  TIERD_TRY(unless(types->size() == c.n_layers, f, "layer_types",
                   fmt::format("{} layers, expected {}", types->size(), c.n_layers)));
  c.global_layers.clear();
  for (uint32_t layer = 0; layer < c.n_layers; ++layer) {
    const json& type = (*types)[layer];
    if (type == "full_attention") c.global_layers.push_back(layer);
    TIERD_TRY(unless(type == "full_attention" || type == "sliding_attention", f, "layer_types",
                     fmt::format("{}, supported are full_attention and sliding_attention", text_of(type))));
  }
  if (c.global_layers.size() == c.n_layers) c.sliding_window = 0;
  if (c.sliding_window == 0) c.global_layers.clear();
  return {};
}

void set_window_period(uint32_t period, ModelConfig& c) {
  if (c.sliding_window == 0 || period == 0) return;
  for (uint32_t layer = period - 1; layer < c.n_layers; layer += period) c.global_layers.push_back(layer);
}

}  // namespace tierd
