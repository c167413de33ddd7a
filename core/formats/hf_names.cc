#include "core/formats/hf_names.h"

#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace tierd {
namespace {

struct NamePair {
  std::string_view theirs;
  std::string_view ours;
};
constexpr std::array<NamePair, 8> kModelNames = {{
    {"embed_tokens", "embed"},
    {"word_embeddings", "embed"},
    {"embed_positions", "position"},
    {"norm", "out_norm"},
    {"final_layer_norm", "out_norm"},
    {"final_layernorm", "out_norm"},
    {"ln_f", "out_norm"},
    {"lm_head", "head"},
}};
constexpr std::array<NamePair, 42> kLayerNames = {{
    {"block_sparse_moe.gate", "router"},
    {"mlp.gate", "router"},
    {"self_attn.q_norm", "q_norm"},
    {"self_attn.k_norm", "k_norm"},
    {"self_attn.query_key_value", "qkv"},
    {"self_attention.query_key_value", "qkv"},
    {"self_attn.q_layernorm", "q_norm"},
    {"self_attn.k_layernorm", "k_norm"},
    {"self_attn.dense", "o"},
    {"self_attention.dense", "o"},
    {"ln_attn", "attn_norm"},
    {"ln_mlp", "ffn_norm"},
    {"mlp.dense_h_to_4h", "up"},
    {"mlp.dense_4h_to_h", "down"},
    {"mlp.c_fc", "up"},
    {"mlp.c_proj", "down"},
    {"mlp.fc1", "up"},
    {"mlp.fc2", "down"},
    {"self_attn.q_proj", "q"},
    {"self_attn.k_proj", "k"},
    {"self_attn.v_proj", "v"},
    {"self_attn.o_proj", "o"},
    {"self_attn.out_proj", "o"},
    {"input_layernorm", "attn_norm"},
    {"self_attn_layer_norm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"final_layer_norm", "ffn_norm"},
    {"mlp.gate_proj", "gate"},
    {"mlp.up_proj", "up"},
    {"mlp.down_proj", "down"},
    {"fc1", "up"},
    {"fc2", "down"},
    {"self_attn.qkv_proj", "q+k+v"},
    {"mlp.gate_up_proj", "gate+up"},
    {"mlp.shared_expert.gate_proj", "shared.gate"},
    {"mlp.shared_expert.up_proj", "shared.up"},
    {"mlp.shared_expert.down_proj", "shared.down"},
    {"mlp.shared_expert_gate", "shared_gate"},
    {"mlp.shared_experts.gate_proj", "shared.gate"},
    {"mlp.shared_experts.up_proj", "shared.up"},
    {"mlp.shared_experts.down_proj", "shared.down"},
    {"mlp.router", "router"},
}};

// Names without ".weight" or ".bias".
constexpr std::array<NamePair, 10> kWholeNames = {{
    {"self_attn.sinks", "sinks"},
    {"mlp.gate.e_score_correction_bias", "router.correction"},
    {"mlp.experts.gate_up_proj", "experts.gate+up"},
    {"mlp.experts.gate_up_proj_bias", "experts.gate+up.bias"},
    {"mlp.experts.gate_up_proj_blocks", "experts.gate+up.blocks"},
    {"mlp.experts.gate_up_proj_scales", "experts.gate+up.scales"},
    {"mlp.experts.down_proj", "experts.down"},
    {"mlp.experts.down_proj_bias", "experts.down.bias"},
    {"mlp.experts.down_proj_blocks", "experts.down.blocks"},
    {"mlp.experts.down_proj_scales", "experts.down.scales"},
}};

// In models that norm results, one of these names means another norm.
constexpr std::array<NamePair, 3> kPostNormNames = {{
    {"post_attention_layernorm", "attn_post_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "ffn_post_norm"},
}};

// Names of the operators of one expert of a mixture.
constexpr std::array<NamePair, 6> kExpertNames = {{
    {"w1", "gate"},
    {"w3", "up"},
    {"w2", "down"},
    {"gate_proj", "gate"},
    {"up_proj", "up"},
    {"down_proj", "down"},
}};

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

// "12.self_attn.q_proj" -> 12, leaving "self_attn.q_proj".
std::optional<uint32_t> take_number(std::string_view& text) {
  uint32_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<size_t>(end - text.data());
  if (failed != std::errc{} || digits == text.size() || *end != '.') return std::nullopt;
  if (digits > 1 && text[0] == '0') return std::nullopt;
  text.remove_prefix(digits + 1);
  return number;
}

template <size_t n>
std::optional<std::string> translate(const std::array<NamePair, n>& names, std::string_view theirs) {
  for (const NamePair& pair : names) {
    if (pair.theirs == theirs) return std::string(pair.ours);
  }
  return std::nullopt;
}

// "mlp.experts.3.up_proj" -> "experts.3.up".
std::optional<std::string> expert_name(std::string_view theirs) {
  if (!take_prefix(theirs, "mlp.experts.") && !take_prefix(theirs, "block_sparse_moe.experts."))
    return std::nullopt;
  const auto expert = take_number(theirs);
  if (!expert) return std::nullopt;
  const auto name = translate(kExpertNames, theirs);
  if (!name) return std::nullopt;
  return fmt::format("experts.{}.{}", *expert, *name);
}

// Takes the prefixes that depend on the class that a file was saved from.
void take_saved_prefixes(std::string_view& text) {
  for (const char* saved_from : {"model.", "language_model.", "model.", "transformer.", "decoder."})
    take_prefix(text, saved_from);
}

// Returns the layer of a tensor, leaving its name in it.
std::optional<uint32_t> take_layer(std::string_view& text) {
  if (!take_prefix(text, "layers.") && !take_prefix(text, "h.")) return std::nullopt;
  return take_number(text);
}

// Returns tierd's name of a tensor in a layer.
std::optional<std::string> name_in_layer(std::string_view theirs, const ModelConfig& config) {
  if (const auto name = translate(kWholeNames, theirs)) return name;
  const bool bias = take_suffix(theirs, ".bias");
  if (!bias && !take_suffix(theirs, ".weight")) return std::nullopt;
  std::optional<std::string> name;
  if (config.post_norms) name = translate(kPostNormNames, theirs);
  if (!name) name = translate(kLayerNames, theirs);
  if (!name) name = expert_name(theirs);
  if (name && bias) *name += ".bias";
  return name;
}

}  // namespace

std::string hf_our_name(std::string_view theirs, const ModelConfig& config) {
  std::string_view rest = theirs;
  take_saved_prefixes(rest);
  if (const auto layer = take_layer(rest)) {
    const auto name = name_in_layer(rest, config);
    return name ? fmt::format("layers.{}.{}", *layer, *name) : std::string(theirs);
  }
  const bool bias = take_suffix(rest, ".bias");
  if (!bias && !take_suffix(rest, ".weight")) return std::string(theirs);
  const auto name = translate(kModelNames, rest);
  return name ? *name + (bias ? ".bias" : "") : std::string(theirs);
}

std::optional<uint32_t> hf_layer(std::string_view theirs) {
  take_saved_prefixes(theirs);
  return take_layer(theirs);
}

}  // namespace tierd
