#include "core/formats/gguf_rope.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace tierd {
namespace {

// Refuses keys about positions that are not read here: ignoring them would change the results.
Status check_keys(const GgufHeader& header, const std::string& prefix) {
  constexpr std::array kKnown = {"freq_base",
                                 "freq_base_swa",
                                 "dimension_count",
                                 "scale_linear",
                                 "scaling.type",
                                 "scaling.factor",
                                 "scaling.original_context_length",
                                 "scaling.attn_factor",
                                 "scaling.finetuned",
                                 "scaling.yarn_ext_factor",
                                 "scaling.yarn_attn_factor",
                                 "scaling.yarn_beta_fast",
                                 "scaling.yarn_beta_slow",
                                 "scaling.yarn_log_multiplier"};
  for (const std::string& key : header.keys(prefix + "rope.")) {
    const std::string_view name =
        std::string_view(key).substr(prefix.size() + std::string_view("rope.").size());
    if (std::ranges::find(kKnown, name) == kKnown.end())
      return header.error(Code::unsupported, key, "this rotary setting is not supported");
  }
  return {};
}

// llama.cpp's yarn_log_multiplier is mscale_all_dim of a model whose mscale is 1.
Status read_yarn(const GgufHeader& header, const std::string& scaling, Rope& rope) {
  rope.scaling = RopeScaling::yarn;
  TIERD_ASSIGN(rope.beta_fast, header.f32(scaling + "yarn_beta_fast", rope.beta_fast));
  TIERD_ASSIGN(rope.beta_slow, header.f32(scaling + "yarn_beta_slow", rope.beta_slow));
  TIERD_ASSIGN(const float of_all, header.f32(scaling + "yarn_log_multiplier", 0.0f));
  const float usual = yarn_magnitude(rope.factor);
  const float derived = of_all == 0 ? usual : usual / yarn_magnitude(rope.factor, of_all);
  TIERD_ASSIGN(const float given, header.f32(scaling + "yarn_attn_factor", derived));
  rope.magnitude *= given;
  const std::string extrapolates_key = scaling + "yarn_ext_factor";
  TIERD_ASSIGN(const float extrapolates, header.f32(extrapolates_key, 1.0f));
  if (extrapolates == 1 || extrapolates < 0) return {};
  return header.error(Code::unsupported, extrapolates_key,
                      fmt::format("found {}, supported is 1", extrapolates));
}

}  // namespace

Status read_gguf_rope(const GgufHeader& header, const std::string& prefix, ModelConfig& c) {
  Rope& rope = c.rope;
  TIERD_TRY(check_keys(header, prefix));
  TIERD_ASSIGN(rope.theta, header.f32(prefix + "rope.freq_base", rope.theta));
  TIERD_ASSIGN(const uint32_t rotated, header.u32(prefix + "rope.dimension_count", c.head_dim));
  if (rotated != c.head_dim) rope.dim = rotated;
  if (rotated == 0) {
    return header.error(Code::unsupported, prefix + "rope.dimension_count",
                        "found 0, supported are rotary positions");
  }
  const std::string scaling = prefix + "rope.scaling.";
  TIERD_ASSIGN(rope.original_context, header.u32(scaling + "original_context_length", c.context_length));
  TIERD_ASSIGN(rope.magnitude, header.f32(scaling + "attn_factor", 1.0f));
  TIERD_ASSIGN(const float old_factor, header.f32(prefix + "rope.scale_linear", 1.0f));
  TIERD_ASSIGN(const float factor, header.f32(scaling + "factor", old_factor));
  // A factor alone means linear, as in llama.cpp.
  TIERD_ASSIGN(const std::string type, header.text(scaling + "type", "linear"));
  if (type == "none") return {};
  if (type == "longrope") {
    rope.scaling = RopeScaling::longrope;
    return {};
  }
  if (type != "linear" && type != "yarn") {
    return header.error(Code::unsupported, scaling + "type",
                        fmt::format("\"{}\", supported are none, linear, yarn and longrope", type));
  }
  if (factor == 0.0f || factor == 1.0f) return {};  // llama.cpp's converters write "none" like this
  rope.factor = factor;
  if (type == "yarn") return read_yarn(header, scaling, rope);
  rope.scaling = RopeScaling::linear;
  return {};
}

}  // namespace tierd
