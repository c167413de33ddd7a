#include "tools/lab/prune/layer_forward.h"

#include <algorithm>
#include <cmath>

#include "core/model/layout/codec.h"

namespace tierd {
namespace {

GroupedMatrix packed(const LinearWeights& linear) {
  return pack(linear.weight, linear.rows, linear.cols);
}

void add_rows(const ComputeKernels& kernels, TokenRows& x, const TokenRows& delta) {
  for (uint32_t t = 0; t < x.count; ++t) kernels.add(x.row(t).data(), delta.row(t).data(), x.width);
}

Result<std::vector<float>> read_row(const TensorSource& source, const TensorInfo& tensor, uint64_t row) {
  std::vector<std::byte> bytes(encoded_bytes(tensor.encoding, tensor.cols));
  TIERD_TRY(source.read(tensor, row * bytes.size(), bytes));
  std::vector<float> values(tensor.cols);
  decode(tensor.encoding, bytes, values);
  return values;
}

}  // namespace

LayerForward::LayerForward(const ModelConfig& config, LayerWeights& weights, MatrixTeam& team)
    : config_(config),
      weights_(weights),
      team_(team),
      q_(packed(weights.q)),
      k_(packed(weights.k)),
      v_(packed(weights.v)),
      o_(packed(weights.o)),
      gate_(packed(weights.gate)),
      up_(packed(weights.up)),
      down_(packed(weights.down)) {
  if (config.position != PositionKind::learned)
    frequencies_ = rope_frequencies(config.rope, config.rotary_dim(), config.context_length);
}

void LayerForward::run(TokenRows& x, const Observer& observer) const {
  const ComputeKernels& kernels = team_.kernels();
  TokenRows normed = normalized(weights_.attn_norm, x);
  if (config_.qkv_relu) {
    for (float& value : normed.values) value = std::max(value, 0.0f);
  }
  observer(LayerInput::attention, normed);
  const TokenRows mixed = attended(normed);
  observer(LayerInput::attended, mixed);
  const TokenRows from_attention = team_.linear(o_, weights_.o.bias, mixed);
  if (!config_.parallel) add_rows(kernels, x, from_attention);
  if (config_.ffn_norm) normed = normalized(weights_.ffn_norm, x);
  observer(LayerInput::network, normed);
  const TokenRows hidden = activated(normed);
  observer(LayerInput::activated, hidden);
  if (config_.parallel) add_rows(kernels, x, from_attention);
  add_rows(kernels, x, team_.linear(down_, weights_.down.bias, hidden));
}

TokenRows LayerForward::normalized(const NormWeights& norm, const TokenRows& x) const {
  const ComputeKernels& kernels = team_.kernels();
  const std::vector<float> zeros(norm.bias.empty() ? x.width : 0);
  const float* bias = norm.bias.empty() ? zeros.data() : norm.bias.data();
  TokenRows out(x.count, x.width);
  for (uint32_t t = 0; t < x.count; ++t) {
    if (config_.norm == Norm::rms) {
      kernels.rms_norm(x.row(t).data(), norm.weight.data(), config_.norm_eps, x.width, out.row(t).data());
    } else {
      kernels.layer_norm(x.row(t).data(), norm.weight.data(), bias, config_.norm_eps, x.width,
                         out.row(t).data());
    }
  }
  return out;
}

void LayerForward::normalize_heads(const NormWeights& norm, TokenRows& x) const {
  const uint32_t width = config_.qk_norm_wide ? x.width : config_.head_dim;
  for (uint32_t t = 0; t < x.count; ++t) {
    TokenRows heads(x.width / width, width);
    for (uint32_t h = 0; h < heads.count; ++h)
      std::ranges::copy(x.row(t).subspan(uint64_t{h} * width, width), heads.row(h).begin());
    heads = normalized(norm, heads);
    for (uint32_t h = 0; h < heads.count; ++h)
      std::ranges::copy(heads.row(h), x.row(t).subspan(uint64_t{h} * width, width).begin());
  }
}

// Rotates pair i of each head by position * frequency[i]. The pair is (2i, 2i + 1) or (i, i + rotary_dim/2).
void LayerForward::rotate(TokenRows& x) const {
  const auto half = static_cast<uint32_t>(frequencies_.size());
  const bool interleaved = config_.position == PositionKind::rope_interleaved;
  for (uint32_t t = 0; t < x.count; ++t) {
    for (uint32_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(t) * frequencies_[i];
      const float cosine = std::cos(angle), sine = std::sin(angle);
      for (uint32_t head = 0; head < x.width; head += config_.head_dim) {
        float& a = x.row(t)[head + (interleaved ? 2 * i : i)];
        float& b = x.row(t)[head + (interleaved ? 2 * i + 1 : i + half)];
        const float turned = a * cosine - b * sine;
        b = a * sine + b * cosine;
        a = turned;
      }
    }
  }
}

TokenRows LayerForward::attended(const TokenRows& normed) const {
  TokenRows q = team_.linear(q_, weights_.q.bias, normed);
  TokenRows k = team_.linear(k_, weights_.k.bias, normed);
  TokenRows v = team_.linear(v_, weights_.v.bias, normed);
  if (config_.qk_norm) {
    normalize_heads(weights_.q_norm, q);
    normalize_heads(weights_.k_norm, k);
  }
  if (config_.qkv_clip > 0) {
    for (TokenRows* rows : {&q, &k, &v}) {
      for (float& value : rows->values) value = std::clamp(value, -config_.qkv_clip, config_.qkv_clip);
    }
  }
  if (config_.position != PositionKind::learned) {
    rotate(q);
    rotate(k);
  }
  const uint32_t head_dim = config_.head_dim;
  const uint32_t heads_per_kv = config_.n_heads / config_.n_kv_heads;
  const ScoreShape score = {.scale = 1.0f / std::sqrt(static_cast<float>(head_dim))};
  TokenRows mixed(normed.count, q.width);
  const uint64_t products = uint64_t{normed.count} * normed.count * q.width;
  team_.each(normed.count, products, [&](uint64_t position) {
    const auto t = static_cast<uint32_t>(position);
    const uint32_t window = config_.sliding_window;
    const uint32_t first = window != 0 && t + 1 > window ? t + 1 - window : 0;
    std::vector<float> scratch(t + 1 - first);
    for (uint32_t h = 0; h < config_.n_heads; ++h) {
      const uint64_t kv = uint64_t{h / heads_per_kv} * head_dim;
      team_.kernels().attend_f32(&q.row(t)[uint64_t{h} * head_dim], &k.values[kv], &v.values[kv], k.pitch,
                                 first, t + 1, head_dim, score, scratch.data(),
                                 &mixed.row(t)[uint64_t{h} * head_dim]);
    }
  });
  return mixed;
}

TokenRows LayerForward::activated(const TokenRows& normed) const {
  const TokenRows up = team_.linear(up_, weights_.up.bias, normed);
  const TokenRows gate = config_.gated ? team_.linear(gate_, weights_.gate.bias, normed) : TokenRows();
  TokenRows out(up.count, up.width);
  for (uint32_t t = 0; t < up.count; ++t) {
    const float* inner = (config_.gated ? gate : up).row(t).data();
    team_.kernels().activate(config_.activation, config_.activation_threshold, inner,
                             config_.gated ? up.row(t).data() : nullptr, up.width, out.row(t).data());
  }
  return out;
}

Result<TokenRows> embed(const TensorSource& source, const std::vector<uint32_t>& tokens) {
  const ModelConfig& config = source.config();
  const TensorInfo& embedding = *source.find("embed");
  const TensorInfo* positions = source.find("position");
  TokenRows x(static_cast<uint32_t>(tokens.size()), config.d_model);
  for (uint32_t t = 0; t < x.count; ++t) {
    TIERD_ASSIGN(const std::vector<float> row, read_row(source, embedding, tokens[t]));
    std::ranges::copy(row, x.row(t).begin());
    if (positions == nullptr) continue;
    TIERD_ASSIGN(const std::vector<float> position,
                 read_row(source, *positions, uint64_t{t} + config.position_offset));
    for (uint32_t i = 0; i < x.width; ++i) x.row(t)[i] += position[i];
  }
  return x;
}

}  // namespace tierd
