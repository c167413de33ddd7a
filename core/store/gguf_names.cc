#include "core/store/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tierd {
namespace {

struct GgufNamePair {
  std::string_view ours;
  std::string_view theirs;
};
constexpr std::array kGgufNames = {
    GgufNamePair{"embed", "token_embd"},  GgufNamePair{"out_norm", "output_norm"},
    GgufNamePair{"head", "output"},       GgufNamePair{"attn_norm", "attn_norm"},
    GgufNamePair{"q", "attn_q"},          GgufNamePair{"k", "attn_k"},
    GgufNamePair{"v", "attn_v"},          GgufNamePair{"o", "attn_output"},
    GgufNamePair{"ffn_norm", "ffn_norm"}, GgufNamePair{"gate", "ffn_gate"},
    GgufNamePair{"up", "ffn_up"},         GgufNamePair{"down", "ffn_down"},
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
  return fmt::format("{}{}{}", prefix, found->theirs, bias ? kBias : ".weight");
}

}  // namespace tierd
