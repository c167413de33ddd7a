#include "core/formats/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tierd {
namespace {

struct GgufNamePair {
  std::string_view ours;
  std::string_view theirs;
};
constexpr std::array<std::string_view, 3> kExpertParts = {"gate", "up", "down"};
constexpr std::array kGgufNames = {
    GgufNamePair{"embed", "token_embd"},
    GgufNamePair{"out_norm", "output_norm"},
    GgufNamePair{"head", "output"},
    GgufNamePair{"attn_norm", "attn_norm"},
    GgufNamePair{"q", "attn_q"},
    GgufNamePair{"k", "attn_k"},
    GgufNamePair{"v", "attn_v"},
    GgufNamePair{"o", "attn_output"},
    GgufNamePair{"ffn_norm", "ffn_norm"},
    GgufNamePair{"gate", "ffn_gate"},
    GgufNamePair{"up", "ffn_up"},
    GgufNamePair{"down", "ffn_down"},
    GgufNamePair{"q_norm", "attn_q_norm"},
    GgufNamePair{"k_norm", "attn_k_norm"},
    GgufNamePair{"router", "ffn_gate_inp"},
    GgufNamePair{"attn_post_norm", "post_attention_norm"},
    GgufNamePair{"ffn_post_norm", "post_ffw_norm"},
    GgufNamePair{"sinks", "attn_sinks"},
    GgufNamePair{"router.correction", "exp_probs_b.bias"},
    GgufNamePair{"shared.gate", "ffn_gate_shexp"},
    GgufNamePair{"shared.up", "ffn_up_shexp"},
    GgufNamePair{"shared.down", "ffn_down_shexp"},
    GgufNamePair{"shared_gate", "ffn_gate_inp_shexp"},
    GgufNamePair{"experts.gate", "ffn_gate_exps"},
    GgufNamePair{"experts.up", "ffn_up_exps"},
    GgufNamePair{"experts.down", "ffn_down_exps"},
};

}  // namespace

std::optional<std::string> gguf_name(std::string_view name) {
  constexpr std::string_view kBias = ".bias";
  constexpr std::string_view kLayers = "layers.";
  const bool bias = name.ends_with(kBias);
  if (bias) name.remove_suffix(kBias.size());
  std::string prefix;
  if (name.starts_with(kLayers)) {
    name.remove_prefix(kLayers.size());
    const size_t dot = name.find('.');
    if (dot == std::string_view::npos) return std::nullopt;
    prefix = fmt::format("blk.{}.", name.substr(0, dot));
    name.remove_prefix(dot + 1);
  }
  const auto found = std::find_if(kGgufNames.begin(), kGgufNames.end(),
                                  [&](const GgufNamePair& known) { return known.ours == name; });
  if (found == kGgufNames.end()) return std::nullopt;
  if (found->theirs.ends_with(kBias)) return prefix + std::string(found->theirs);
  return fmt::format("{}{}{}", prefix, found->theirs, bias ? kBias : ".weight");
}

std::optional<std::string> gguf_experts_part(std::string_view theirs) {
  constexpr std::string_view kLayers = "blk.", kEnding = "_exps.weight";
  if (!theirs.starts_with(kLayers) || !theirs.ends_with(kEnding)) return std::nullopt;
  theirs.remove_prefix(kLayers.size());
  theirs.remove_suffix(kEnding.size());
  const size_t dot = theirs.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view name = theirs.substr(dot + 1);
  for (const std::string_view part : kExpertParts) {
    if (name == fmt::format("ffn_{}", part))
      return fmt::format("layers.{}.experts.*.{}", theirs.substr(0, dot), part);
  }
  return std::nullopt;
}

std::optional<std::string> gguf_experts_name(std::string_view ours) {
  constexpr std::string_view kLayers = "layers.", kExperts = ".experts.";
  const size_t experts = ours.find(kExperts);
  if (!ours.starts_with(kLayers) || experts == std::string_view::npos) return std::nullopt;
  const std::string_view part = ours.substr(ours.rfind('.') + 1);
  if (std::ranges::find(kExpertParts, part) == kExpertParts.end()) return std::nullopt;
  return fmt::format("blk.{}.ffn_{}_exps.weight", ours.substr(kLayers.size(), experts - kLayers.size()),
                     part);
}

}  // namespace tierd
