#include "core/model/config.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

namespace tierd {
namespace {

// Far above every existing model, and small enough that no product of them overflows 64 bits.
constexpr uint64_t kMaxLayers = 4096;
constexpr uint64_t kMaxWidth = 1u << 20;
constexpr uint64_t kMaxHeadDim = 4096;
constexpr uint64_t kMaxVocab = 1u << 24;
constexpr uint64_t kMaxContext = 1u << 28;
constexpr uint64_t kMaxExperts = 1u << 17;  // in all layers
constexpr uint32_t kMaxExpertGroups = 64;
constexpr uint64_t kMaxPositionOffset = 1u << 16;

Error bad(std::string_view origin, std::string detail) {
  return {Code::corrupt, std::string(origin), std::move(detail)};
}

Status in_range(std::string_view origin, std::string_view field, uint64_t value, uint64_t low,
                uint64_t high) {
  if (value >= low && value <= high) return {};
  return bad(origin, fmt::format("{} is {}, expected {} to {}", field, value, low, high));
}

Status positive(std::string_view origin, std::string_view field, float value) {
  if (std::isfinite(value) && value > 0) return {};
  return bad(origin, fmt::format("{} is {}, expected a positive number", field, value));
}

Status validate_rope(const ModelConfig& c, std::string_view origin) {
  if (c.rotary_dim() % 2 != 0 || c.rotary_dim() > c.head_dim) {
    if (c.rope.dim == 0) {
      return bad(origin,
                 fmt::format("head_dim is {}, expected an even number for rotary positions", c.head_dim));
    }
    return bad(origin, fmt::format("{1} of the {0} values of a head are rotated, expected an even number",
                                   c.head_dim, c.rope.dim));
  }
  return validate(c.rope, c.rotary_dim(), origin);
}

// Checks that a list names layers of the model in order.
Status validate_layers(const ModelConfig& c, std::string_view origin, std::string_view what,
                       std::span<const uint32_t> layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] < c.n_layers && (i == 0 || layers[i] > layers[i - 1])) continue;
    return bad(origin,
               fmt::format("layer {} {}, expected layers below {} in order", layers[i], what, c.n_layers));
  }
  return {};
}

Status validate_routing(const ModelConfig& c, std::string_view origin) {
  TIERD_TRY(positive(origin, "the scale of expert weights", c.expert_scale));
  if (c.expert_groups == 0) return {};
  TIERD_TRY(in_range(origin, "the number of expert groups", c.expert_groups, 1,
                     std::min(c.n_experts, kMaxExpertGroups)));
  TIERD_TRY(
      in_range(origin, "the number of expert groups for a token", c.expert_groups_used, 1, c.expert_groups));
  if (c.n_experts % c.expert_groups != 0) {
    return bad(origin, fmt::format("{} experts in {} groups, expected groups of one size", c.n_experts,
                                   c.expert_groups));
  }
  const uint32_t of_group = c.n_experts / c.expert_groups;
  TIERD_TRY(in_range(origin, "the number of experts that make a group's score", c.group_best, 1, of_group));
  return in_range(origin, "the number of experts for a token", c.experts_per_token, 1,
                  uint64_t{c.expert_groups_used} * of_group);
}

Status validate_experts(const ModelConfig& c, std::string_view origin) {
  TIERD_TRY(in_range(origin, "the number of experts in all layers", uint64_t{c.n_experts} * c.n_layers, 0,
                     kMaxExperts));
  TIERD_TRY(in_range(origin, "the number of experts for a token", c.experts_per_token, c.is_mixture() ? 1 : 0,
                     c.n_experts));
  if (!c.is_mixture()) {
    if (c.expert_weights_sum_to_one)
      return bad(origin, "expert weights are normalized, but the model has no experts");
    if (!c.dense_layers.empty() || c.shared_d_ff != 0)
      return bad(origin, "networks beside experts are set, but the model has no experts");
    return {};
  }
  if (!c.gated || c.parallel) {
    return bad(origin,
               "the feed-forward network of this mixture is not supported; expected experts with a gate, "
               "after attention");
  }
  TIERD_TRY(validate_layers(c, origin, "has one network in place of experts", c.dense_layers));
  TIERD_TRY(in_range(origin, "the number of layers without experts", c.dense_layers.size(), 0,
                     c.n_layers - uint64_t{1}));
  TIERD_TRY(in_range(origin, "the width of networks in place of experts", c.dense_d_ff,
                     c.dense_layers.empty() ? 0 : 1, kMaxWidth));
  TIERD_TRY(in_range(origin, "the width of networks beside experts", c.shared_d_ff, c.shared_gate ? 1 : 0,
                     kMaxWidth));
  if (c.ffn_bias && c.widest_network() != 0)
    return bad(origin, "experts with biases beside other networks are not supported");
  return validate_routing(c, origin);
}

Status validate_residuals(const ModelConfig& c, std::string_view origin) {
  if (!c.attn_norm && (c.parallel || !c.post_norms))
    return bad(origin, "attention and FFN have no norm, expected one of their inputs or of their results");
  if (c.post_norms && (c.parallel || c.norm != Norm::rms || c.is_mixture()))
    return bad(origin,
               "norms of results are supported after RMS norms, one after the other, and without experts");
  TIERD_TRY(positive(origin, "the scale of the embedding", c.embed_scale));
  TIERD_TRY(positive(origin, "the scale of results", c.residual_scale));
  TIERD_TRY(positive(origin, "the scale of logits", c.logit_scale));
  if (c.residual_scale != 1 && c.is_mixture())
    return bad(origin, "results of experts are scaled, which is not supported");
  for (const auto& [field, value] : {std::pair("the scale of attention", c.attention_scale),
                                     {"the cap of attention", c.attention_cap},
                                     {"the cap of logits", c.logit_cap},
                                     {"the growth of queries", c.query_growth}}) {
    if (!std::isfinite(value) || value < 0)
      return bad(origin, fmt::format("{} is {}, expected 0 or a positive number", field, value));
  }
  if (c.query_growth != 0)
    TIERD_TRY(in_range(origin, "the span of the growth of queries", c.growth_span, 1, kMaxContext));
  if (c.activation == Activation::swiglu_oai && !c.gated)
    return bad(origin, "the activation swiglu_oai is set, but the feed-forward network has no gate");
  return {};
}

Status validate_windows(const ModelConfig& c, std::string_view origin) {
  TIERD_TRY(validate_layers(c, origin, "attends to all positions", c.global_layers));
  TIERD_TRY(validate_layers(c, origin, "has no rotary positions", c.unturned_layers));
  if (c.local_theta == 0) return {};
  if (c.position == PositionKind::learned)
    return bad(origin, "a rope theta of windows is set, but the positions are learned");
  return positive(origin, "rope theta of windows", c.local_theta);
}

}  // namespace

Status validate(const ModelConfig& c, std::string_view origin) {
  TIERD_TRY(in_range(origin, "the number of layers", c.n_layers, 1, kMaxLayers));
  TIERD_TRY(in_range(origin, "the model width", c.d_model, 1, kMaxWidth));
  TIERD_TRY(in_range(origin, "the number of attention heads", c.n_heads, 1, kMaxWidth));
  TIERD_TRY(in_range(origin, "the number of key/value heads", c.n_kv_heads, 1, c.n_heads));
  TIERD_TRY(in_range(origin, "head_dim", c.head_dim, 1, kMaxHeadDim));
  TIERD_TRY(in_range(origin, "heads x head_dim", uint64_t{c.n_heads} * c.head_dim, 1, kMaxWidth));
  TIERD_TRY(in_range(origin, "the feed-forward width", c.d_ff, 1, kMaxWidth));
  TIERD_TRY(in_range(origin, "the vocabulary size", c.vocab_size, 1, kMaxVocab));
  TIERD_TRY(in_range(origin, "the context length", c.context_length, 1, kMaxContext));
  TIERD_TRY(in_range(origin, "the sliding window", c.sliding_window, 0, kMaxContext));
  TIERD_TRY(in_range(origin, "the position offset", c.position_offset, 0, kMaxPositionOffset));
  TIERD_TRY(validate_experts(c, origin));
  if (c.n_heads % c.n_kv_heads != 0) {
    return bad(origin, fmt::format("{} attention heads, expected a multiple of the {} key/value heads",
                                   c.n_heads, c.n_kv_heads));
  }
  if (!std::isfinite(c.norm_eps) || c.norm_eps < 0 || c.norm_eps > 1) {
    return bad(origin, fmt::format("the norm epsilon is {}, expected 0 to 1", c.norm_eps));
  }
  if (c.norm_bias && c.norm == Norm::rms) return bad(origin, "an RMS norm has a bias, expected none");
  if (!c.parallel && c.attn_norm != c.ffn_norm)
    return bad(origin, "attention and FFN share a norm, which is supported only where they are parallel");
  TIERD_TRY(validate_residuals(c, origin));
  TIERD_TRY(validate_windows(c, origin));
  if (c.head_bias && c.tied_embeddings)
    return bad(origin, "the head is the embedding and has a bias, expected none");
  if (!std::isfinite(c.activation_threshold) || c.activation_threshold < 0 ||
      (c.activation_threshold != 0 && !has_threshold(c.activation))) {
    return bad(origin, fmt::format("the activation threshold is {}, expected 0, or for relu and swiglu_oai a "
                                   "positive number",
                                   c.activation_threshold));
  }
  if (c.qk_norm_wide && !c.qk_norm)
    return bad(origin, "q and k have a norm over all heads, but the norm of q and k is off");
  if (c.qkv_relu && c.parallel && !c.ffn_norm) {
    return bad(origin, "q, k and v have a ReLU, which is not supported where the FFN has the same input");
  }
  if (!std::isfinite(c.qkv_clip) || c.qkv_clip < 0) {
    return bad(origin,
               fmt::format("q, k and v are clipped at {}, expected 0 or a positive number", c.qkv_clip));
  }
  if (c.position != PositionKind::learned) {
    if (c.position_offset != 0)
      return bad(origin, "a position offset is set, which is supported for learned positions only");
    TIERD_TRY(validate_rope(c, origin));
  }
  return {};
}

bool has_plain_layers(const ModelConfig& c) {
  const bool plain_results =
      c.attn_norm && !c.post_norms && c.embed_scale == 1 && c.residual_scale == 1 && c.rope.magnitude == 1;
  const bool plain_attention = c.attention_scale == 0 && c.attention_cap == 0 && c.global_layers.empty() &&
                               c.unturned_layers.empty() && !c.attention_sinks && c.query_growth == 0;
  const bool plain_experts = c.dense_layers.empty() && c.shared_d_ff == 0 && !c.router_bias &&
                             !c.router_correction && !(c.is_mixture() && c.ffn_bias);
  return plain_results && plain_attention && plain_experts && c.activation != Activation::swiglu_oai;
}

std::string shape_text(const ModelConfig& config) {
  std::string text = fmt::format("{}, {} layers, width {}, networks of {}, {} and {} heads of {}, {} tokens",
                                 config.architecture, config.n_layers, config.d_model, config.d_ff,
                                 config.n_heads, config.n_kv_heads, config.head_dim, config.vocab_size);
  if (config.is_mixture()) text += fmt::format(", {} experts", config.n_experts);
  return text;
}

Rope local_rope(const ModelConfig& config) {
  return {.theta = config.local_theta, .dim = config.rope.dim};
}

std::vector<TensorSpec> required_tensors(const ModelConfig& c) {
  std::vector<TensorSpec> specs;
  const auto matrix = [&](std::string name, uint64_t rows, uint64_t cols, bool bias) {
    if (bias) specs.push_back({name + ".bias", 1, rows});
    specs.push_back({std::move(name), rows, cols});
  };
  const auto vector = [&](std::string name, uint64_t width, bool bias) {
    if (bias) specs.push_back({name + ".bias", 1, width});
    specs.push_back({std::move(name), 1, width});
  };
  const auto norm = [&](std::string name) { vector(std::move(name), c.d_model, c.norm_bias); };
  const auto order = [&](const std::string& of, uint64_t width) {
    if (c.channel_order) specs.push_back({of + ".order", 1, width});
  };
  const auto feed_forward = [&](const std::string& of, uint64_t width, bool bias) {
    if (c.gated) matrix(of + "gate", width, c.d_model, bias);
    matrix(of + "up", width, c.d_model, bias);
    matrix(of + "down", c.d_model, width, bias);
  };

  matrix("embed", c.vocab_size, c.d_model, false);
  if (c.position == PositionKind::learned) {
    matrix("position", uint64_t{c.context_length} + c.position_offset, c.d_model, false);
  }
  for (uint32_t layer = 0; layer < c.n_layers; ++layer) {
    const std::string prefix = fmt::format("layers.{}.", layer);
    if (c.attn_norm) norm(prefix + "attn_norm");
    matrix(prefix + "q", c.q_dim(), c.d_model, c.qkv_bias);
    matrix(prefix + "k", c.kv_dim(), c.d_model, c.qkv_bias);
    matrix(prefix + "v", c.kv_dim(), c.d_model, c.qkv_bias);
    if (c.qk_norm) {
      const bool bias = c.norm == Norm::layer;
      vector(prefix + "q_norm", c.qk_norm_wide ? c.q_dim() : c.head_dim, bias);
      vector(prefix + "k_norm", c.qk_norm_wide ? c.kv_dim() : c.head_dim, bias);
    }
    matrix(prefix + "o", c.d_model, c.q_dim(), c.o_bias);
    order(prefix + "qkv", c.d_model);
    order(prefix + "o", c.q_dim());
    if (c.post_norms) norm(prefix + "attn_post_norm");
    if (c.ffn_norm) norm(prefix + "ffn_norm");
    if (c.post_norms) norm(prefix + "ffn_post_norm");
    if (c.attention_sinks) vector(prefix + "sinks", c.n_heads, false);
    if (const uint32_t width = c.network_width(layer); width != 0) {
      feed_forward(prefix + (c.has_experts(layer) ? "shared." : ""), width, c.ffn_bias);
      order(prefix + "up", c.d_model);
      order(prefix + "down", width);
    }
    if (!c.has_experts(layer)) continue;
    matrix(prefix + "router", c.n_experts, c.d_model, c.router_bias);
    if (c.router_correction) vector(prefix + "router.correction", c.n_experts, false);
    if (c.shared_gate) vector(prefix + "shared_gate", c.d_model, false);
    if (c.ffn_bias) {
      matrix(prefix + "experts.gate.bias", c.n_experts, c.d_ff, false);
      matrix(prefix + "experts.up.bias", c.n_experts, c.d_ff, false);
      matrix(prefix + "experts.down.bias", c.n_experts, c.d_model, false);
    }
    for (uint32_t e = 0; e < c.n_experts; ++e) {
      const std::string expert = fmt::format("{}experts.{}.", prefix, e);
      feed_forward(expert, c.d_ff, false);
      if (!c.expert_order) continue;
      order(expert + "up", c.d_model);
      order(expert + "down", c.d_ff);
    }
  }
  norm("out_norm");
  if (!c.tied_embeddings) matrix("head", c.vocab_size, c.d_model, c.head_bias);
  return specs;
}

}  // namespace tierd
