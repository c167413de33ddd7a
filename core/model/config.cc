#include "core/model/config.h"

#include <cmath>
#include <numbers>

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
  const Rope& rope = c.rope;
  if (c.rotary_dim() % 2 != 0 || c.rotary_dim() > c.head_dim) {
    if (rope.dim == 0) {
      return bad(origin,
                 fmt::format("head_dim is {}, expected an even number for rotary positions", c.head_dim));
    }
    return bad(origin, fmt::format("{1} of the {0} values of a head are rotated, expected an even number",
                                   c.head_dim, rope.dim));
  }
  TIERD_TRY(positive(origin, "rope theta", rope.theta));
  TIERD_TRY(positive(origin, "rope scaling factor", rope.factor));
  if (rope.scaling == RopeScaling::llama3) {
    TIERD_TRY(positive(origin, "rope low_freq_factor", rope.low_freq_factor));
    TIERD_TRY(positive(origin, "rope high_freq_factor", rope.high_freq_factor));
    if (rope.high_freq_factor <= rope.low_freq_factor) {
      return bad(origin, fmt::format("rope high_freq_factor {} is not above low_freq_factor {}",
                                     rope.high_freq_factor, rope.low_freq_factor));
    }
    TIERD_TRY(in_range(origin, "rope original context", rope.original_context, 1, kMaxContext));
  }
  if (!rope.divisors.empty() && rope.divisors.size() != c.rotary_dim() / 2) {
    return bad(
        origin,
        fmt::format("{} rope frequency divisors, expected half as many as the {} rotated values of a head",
                    rope.divisors.size(), c.rotary_dim()));
  }
  for (const float divisor : rope.divisors) TIERD_TRY(positive(origin, "rope frequency divisor", divisor));
  return {};
}

Status validate_experts(const ModelConfig& c, std::string_view origin) {
  TIERD_TRY(in_range(origin, "the number of experts in all layers", uint64_t{c.n_experts} * c.n_layers, 0,
                     kMaxExperts));
  TIERD_TRY(in_range(origin, "the number of experts for a token", c.experts_per_token, c.is_mixture() ? 1 : 0,
                     c.n_experts));
  if (!c.is_mixture()) {
    if (c.expert_weights_sum_to_one)
      return bad(origin, "expert weights are normalized, but the model has no experts");
    return {};
  }
  if (c.gated && !c.ffn_bias && !c.parallel) return {};
  return bad(origin,
             "the feed-forward network of this mixture is not supported; expected experts with a gate, "
             "without biases, after attention");
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
                                     {"the cap of logits", c.logit_cap}}) {
    if (!std::isfinite(value) || value < 0)
      return bad(origin, fmt::format("{} is {}, expected 0 or a positive number", field, value));
  }
  return {};
}

Status validate_windows(const ModelConfig& c, std::string_view origin) {
  for (size_t i = 0; i < c.global_layers.size(); ++i) {
    const uint32_t layer = c.global_layers[i];
    if (layer < c.n_layers && (i == 0 || layer > c.global_layers[i - 1])) continue;
    return bad(origin, fmt::format("layer {} attends to all positions, expected layers below {} in order",
                                   layer, c.n_layers));
  }
  if (c.local_theta == 0) return {};
  if (c.position == PositionKind::learned)
    return bad(origin, "a rope theta of windows is set, but the positions are learned");
  return positive(origin, "rope theta of windows", c.local_theta);
}

// Llama 3.1: long wavelengths are stretched by `factor`, short ones kept, those between are blended.
double llama3_frequency(double frequency, const Rope& rope) {
  const double context = rope.original_context;
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < context / rope.high_freq_factor) return frequency;
  if (wavelength > context / rope.low_freq_factor) return frequency / rope.factor;
  const double smooth =
      (context / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - smooth) * frequency / rope.factor + smooth * frequency;
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
      (c.activation_threshold != 0 && c.activation != Activation::relu)) {
    return bad(origin,
               fmt::format("the activation threshold is {}, expected 0, or for relu a positive number",
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

std::string shape_text(const ModelConfig& config) {
  std::string text = fmt::format("{}, {} layers, width {}, networks of {}, {} and {} heads of {}, {} tokens",
                                 config.architecture, config.n_layers, config.d_model, config.d_ff,
                                 config.n_heads, config.n_kv_heads, config.head_dim, config.vocab_size);
  if (config.is_mixture()) text += fmt::format(", {} experts", config.n_experts);
  return text;
}

std::vector<float> rope_frequencies(const ModelConfig& c) {
  const uint32_t dim = c.rotary_dim();
  std::vector<float> frequencies(dim / 2);
  for (uint32_t i = 0; i < frequencies.size(); ++i) {
    double frequency = 1.0 / std::pow(static_cast<double>(c.rope.theta), 2.0 * i / dim);
    if (c.rope.scaling == RopeScaling::linear) frequency /= c.rope.factor;
    if (c.rope.scaling == RopeScaling::llama3) frequency = llama3_frequency(frequency, c.rope);
    if (!c.rope.divisors.empty()) frequency /= c.rope.divisors[i];
    frequencies[i] = static_cast<float>(frequency);
  }
  return frequencies;
}

std::vector<float> local_rope_frequencies(const ModelConfig& c) {
  ModelConfig local;
  local.head_dim = c.head_dim;
  local.rope.dim = c.rope.dim;
  local.rope.theta = c.local_theta;
  return rope_frequencies(local);
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
    if (c.is_mixture()) matrix(prefix + "router", c.n_experts, c.d_model, false);
    const auto feed_forward = [&](const std::string& of) {
      if (c.gated) matrix(of + "gate", c.d_ff, c.d_model, c.ffn_bias);
      matrix(of + "up", c.d_ff, c.d_model, c.ffn_bias);
      matrix(of + "down", c.d_model, c.d_ff, c.ffn_bias);
    };
    if (!c.is_mixture()) {
      feed_forward(prefix);
      order(prefix + "up", c.d_model);
      order(prefix + "down", c.d_ff);
    }
    for (uint32_t e = 0; e < c.n_experts; ++e) {
      const std::string expert = fmt::format("{}experts.{}.", prefix, e);
      feed_forward(expert);
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
