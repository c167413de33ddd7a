#include "tools/lab/train/torch_transformer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace tierd {
namespace {

using at::Tensor;

// As predictor top-k: of equals on the border all stay.
Tensor masked(const Tensor& x, const Mask& mask) {
  const int64_t n = x.size(-1);
  const auto left_out = static_cast<int64_t>(std::lround(mask.sparsity * static_cast<double>(n)));
  if (left_out == 0) return x;
  const Tensor fixed = x.detach();
  Tensor is_kept = at::zeros_like(fixed, at::kBool);
  if (left_out < n) {
    const Tensor magnitude = fixed.abs();
    is_kept = magnitude >= std::get<0>(magnitude.kthvalue(left_out + 1, -1, true));
  }
  if (!mask.straight_through) return x * is_kept;  // the gradient of what is left out is zero
  return x + (fixed * is_kept - fixed);            // exactly what is kept, with the gradient of x
}

Tensor activate(const ModelConfig& config, const Tensor& x) {
  switch (config.activation) {
    case Activation::silu:
      return at::silu(x);
    case Activation::relu:
      return at::threshold(x, config.activation_threshold, 0);
    case Activation::relu_squared:
      return at::relu(x).square();
    case Activation::gelu:
      return at::gelu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
  }
  return x;
}

}  // namespace

struct TorchTransformer::Pass {
  const ModelConfig& config;
  const Tensor& frequencies;
  const TorchWeights& weights;
  const Mask& mask;

  Tensor find(const std::string& name) const {
    const auto found = weights.find(name);
    return found == weights.end() ? Tensor() : found->second;
  }

  Tensor linear(const std::string& name, const Tensor& x) const {
    return at::linear(x, weights.at(name), find(name + ".bias"));
  }

  Tensor normalized(Norm kind, const std::string& name, const Tensor& x) const {
    const Tensor weight = weights.at(name);
    if (kind == Norm::layer) {
      return at::layer_norm(x, weight.sizes(), weight, find(name + ".bias"), config.norm_eps);
    }
    return x * (x.square().mean(-1, true) + config.norm_eps).rsqrt() * weight;
  }

  // x [tokens x heads x head_dim]: pair (i, i + half) of the first rotary_dim values turns by position *
  // frequency i.
  Tensor rotated(const Tensor& x) const {
    const int64_t half = config.rotary_dim() / 2;
    const Tensor positions = at::arange(x.size(0), frequencies.options());
    const Tensor angles = at::outer(positions, frequencies).unsqueeze(1);
    const Tensor cosine = angles.cos(), sine = angles.sin();
    const Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
    const Tensor rest = x.narrow(-1, 2 * half, x.size(-1) - 2 * half);
    return at::cat({a * cosine - b * sine, a * sine + b * cosine, rest}, -1);
  }

  // [heads x tokens x head_dim] of x, which is masked already.
  Tensor heads(const std::string& prefix, const char* part, uint32_t n, const Tensor& x) const {
    Tensor y = linear(prefix + part, x).view({x.size(0), n, config.head_dim});
    if (*part != 'v') {
      if (config.qk_norm) y = normalized(Norm::layer, prefix + part + "_norm", y);
      if (config.position != PositionKind::learned) y = rotated(y);
    }
    return y.transpose(0, 1);
  }

  // Who sees whom: [tokens x tokens], minus infinity where nobody does.
  Tensor horizon(int64_t tokens, const at::TensorOptions& options) const {
    const double never = -std::numeric_limits<double>::infinity();
    Tensor unseen = at::ones({tokens, tokens}, options.dtype(at::kBool)).triu(1);
    if (config.sliding_window != 0) {
      unseen = unseen.logical_or(at::ones_like(unseen).tril(-static_cast<int64_t>(config.sliding_window)));
    }
    return at::zeros({tokens, tokens}, options).masked_fill(unseen, never);
  }

  Tensor attention(const std::string& prefix, const Tensor& normed) const {
    const Tensor x = masked(normed, mask);
    const Tensor q = heads(prefix, "q", config.n_heads, x);
    const int64_t sharing = config.n_heads / config.n_kv_heads;
    const Tensor k = heads(prefix, "k", config.n_kv_heads, x).repeat_interleave(sharing, 0);
    const Tensor v = heads(prefix, "v", config.n_kv_heads, x).repeat_interleave(sharing, 0);
    const double scale = 1 / std::sqrt(static_cast<double>(config.head_dim));
    const Tensor scores = at::matmul(q, k.transpose(1, 2)) * scale + horizon(x.size(0), x.options());
    const Tensor mixed = at::matmul(scores.softmax(-1), v).transpose(0, 1).reshape({x.size(0), -1});
    return linear(prefix + "o", masked(mixed, mask));
  }

  Tensor feed_forward(const std::string& prefix, const Tensor& normed) const {
    const Tensor x = masked(normed, mask);
    const Tensor up = linear(prefix + "up", x);
    const Tensor hidden =
        config.gated ? activate(config, linear(prefix + "gate", x)) * up : activate(config, up);
    return linear(prefix + "down", masked(hidden, mask));
  }

  Tensor run(const Tensor& tokens) const {
    Tensor x = at::embedding(weights.at("embed"), tokens);
    if (config.position == PositionKind::learned) {
      x = x + weights.at("position").narrow(0, config.position_offset, tokens.size(0));
    }
    for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
      const std::string prefix = fmt::format("layers.{}.", layer);
      Tensor normed = normalized(config.norm, prefix + "attn_norm", x);
      const Tensor attended = attention(prefix, normed);
      if (!config.parallel) x = x + attended;
      if (config.ffn_norm) normed = normalized(config.norm, prefix + "ffn_norm", x);
      const Tensor fed = feed_forward(prefix, normed);
      if (config.parallel) x = x + attended;
      x = x + fed;
    }
    x = normalized(config.norm, "out_norm", x);
    return at::linear(x, weights.at(config.tied_embeddings ? "embed" : "head"), find("head.bias"));
  }
};

Tensor TorchTransformer::forward(const TorchWeights& weights, const Tensor& tokens, const Mask& mask) const {
  return Pass{config_, frequencies_, weights, mask}.run(tokens);
}

}  // namespace tierd
