#include "tests/model/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/check.h"

namespace tierd {
namespace {

// out[i] = sum over j of weight[i][j] * x[j], plus bias[i] if there is a bias.
void matmul(std::span<const float> weight, std::span<const float> bias, std::span<const float> x,
            std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    float sum = 0;
    for (size_t j = 0; j < x.size(); ++j) sum += weight[i * x.size() + j] * x[j];
    out[i] = bias.empty() ? sum : sum + bias[i];
  }
}

void softmax(std::span<float> x) {
  const float highest = *std::max_element(x.begin(), x.end());
  float sum = 0;
  for (float& value : x) {
    value = std::exp(value - highest);
    sum += value;
  }
  for (float& value : x) value /= sum;
}

// Written out here although tiers/compute has scalar twins: an oracle shares no code with the code it tests.
float activate(Activation activation, float threshold, float x) {
  switch (activation) {
    case Activation::silu:
      return x / (1.0f + std::exp(-x));
    case Activation::relu:
      return x > threshold ? x : 0.0f;
    case Activation::relu_squared:
      return x > 0 ? x * x : 0.0f;
    case Activation::gelu:
      return 0.5f * x * (1.0f + std::erf(x / std::numbers::sqrt2_v<float>));
    case Activation::swiglu_oai: {
      const float m = std::min(x, threshold);
      return m / (1.0f + std::exp(-1.702f * m));
    }
    case Activation::gelu_tanh: {
      const float scale = std::sqrt(2.0f * std::numbers::inv_pi_v<float>);
      return 0.5f * x * (1.0f + std::tanh(scale * (x + 0.044715f * x * x * x)));
    }
  }
  return x;
}

// rms: x / sqrt(mean(x^2) + eps) * weight.  layer: (x - mean) / sqrt(variance + eps) * weight + bias.
void normalize(Norm kind, float eps, std::span<const float> weight, std::span<const float> bias,
               std::span<const float> x, std::span<float> out) {
  const auto n = static_cast<float>(x.size());
  float mean = 0;
  if (kind == Norm::layer) {
    for (const float value : x) mean += value;
    mean /= n;
  }
  float squares = 0;
  for (const float value : x) squares += (value - mean) * (value - mean);
  const float scale = 1.0f / std::sqrt(squares / n + eps);
  for (size_t i = 0; i < x.size(); ++i) {
    out[i] = (x[i] - mean) * scale * weight[i];
    if (!bias.empty()) out[i] += bias[i];
  }
}

}  // namespace

Result<Reference> Reference::load(const TensorSource& source, uint32_t context) {
  const ModelConfig& c = source.config();
  Reference model(c);
  const auto read = [&](const std::string& name, Tensor& tensor) -> Status {
    const TensorInfo* info = source.find(name);
    if (info == nullptr) return {};
    TIERD_ASSIGN(tensor, source.read_f32(*info));
    return {};
  };
  // A source has exactly the required tensors, so an absent one is one that this architecture does not have.
  const auto read_pair = [&](const std::string& name, auto& pair) -> Status {
    TIERD_TRY(read(name, pair.weight));
    return read(name + ".bias", pair.bias);
  };

  TIERD_TRY(read("embed", model.embed_));
  TIERD_TRY(read("position", model.position_));
  model.layers_.resize(c.n_layers);
  for (uint32_t i = 0; i < c.n_layers; ++i) {
    Layer& layer = model.layers_[i];
    const std::string prefix = fmt::format("layers.{}.", i);
    TIERD_TRY(read_pair(prefix + "attn_norm", layer.attn_norm));
    TIERD_TRY(read_pair(prefix + "q", layer.q));
    TIERD_TRY(read_pair(prefix + "k", layer.k));
    TIERD_TRY(read_pair(prefix + "v", layer.v));
    TIERD_TRY(read_pair(prefix + "q_norm", layer.q_norm));
    TIERD_TRY(read_pair(prefix + "k_norm", layer.k_norm));
    TIERD_TRY(read_pair(prefix + "o", layer.o));
    TIERD_TRY(read_pair(prefix + "ffn_norm", layer.ffn_norm));
    TIERD_TRY(read_pair(prefix + "attn_post_norm", layer.attn_post_norm));
    TIERD_TRY(read_pair(prefix + "ffn_post_norm", layer.ffn_post_norm));
    layer.window = c.window_of(i);
    layer.turns = c.turns(i);
    layer.turns_locally = c.turns_locally(i);
    TIERD_TRY(read(prefix + "sinks", layer.sinks));
    const auto read_ffn = [&](const std::string& of, FeedForward& ffn) -> Status {
      TIERD_TRY(read_pair(of + "gate", ffn.gate));
      TIERD_TRY(read_pair(of + "up", ffn.up));
      return read_pair(of + "down", ffn.down);
    };
    TIERD_TRY(read_ffn(prefix, layer.ffn));
    TIERD_TRY(read_ffn(prefix + "shared.", layer.shared));
    TIERD_TRY(read(prefix + "shared_gate", layer.shared_gate));
    TIERD_TRY(read_pair(prefix + "router", layer.router));
    TIERD_TRY(read(prefix + "router.correction", layer.correction));
    FeedForward biases;  // of all experts
    TIERD_TRY(read_ffn(prefix + "experts.", biases));
    layer.experts.resize(c.has_experts(i) ? c.n_experts : 0);
    for (uint32_t e = 0; e < layer.experts.size(); ++e) {
      FeedForward& expert = layer.experts[e];
      TIERD_TRY(read_ffn(fmt::format("{}experts.{}.", prefix, e), expert));
      for (const auto of : {&FeedForward::gate, &FeedForward::up, &FeedForward::down}) {
        const Tensor& all = (biases.*of).bias;
        const size_t width = all.size() / c.n_experts;
        (expert.*of).bias.assign(all.begin() + e * width, all.begin() + (e + 1) * width);
      }
    }
  }
  TIERD_TRY(read_pair("out_norm", model.out_norm_));
  TIERD_TRY(read_pair("head", model.head_));

  const auto frequencies = [&](const Rope& rope) {
    return rope_frequencies(rope, c.rotary_dim(), context != 0 ? context : c.context_length);
  };
  if (c.position != PositionKind::learned) model.frequencies_ = frequencies(c.rope);
  if (c.local_theta != 0) model.local_frequencies_ = frequencies(local_rope(c));
  model.x_.resize(c.d_model);
  model.normed_.resize(c.d_model);
  model.q_.resize(c.q_dim());
  model.mixed_.resize(c.q_dim());
  model.delta_.resize(c.d_model);
  model.routing_.resize(c.n_experts);
  model.expert_.resize(c.d_model);
  model.logits_.resize(c.vocab_size);
  return model;
}

std::span<const float> Reference::forward(uint32_t token, uint32_t position) {
  TIERD_CHECK(token < config_.vocab_size && position < config_.context_length);

  embed(token, position);
  for (Layer& layer : layers_) {
    normalize(layer.attn_norm);
    if (config_.qkv_relu) {
      for (float& value : normed_) value = std::max(value, 0.0f);
    }
    attention(layer, position);
    attended_ = delta_;
    if (!config_.parallel) add_result(layer.attn_post_norm, attended_);
    if (config_.ffn_norm || !config_.attn_norm) normalize(layer.ffn_norm);
    if (!layer.experts.empty()) {
      mixture(layer);
    } else {
      feed_forward(layer.ffn, delta_);
    }
    if (config_.parallel) add_result(layer.attn_post_norm, attended_);
    add_result(layer.ffn_post_norm, delta_);
  }
  normalize(out_norm_);
  matmul(config_.tied_embeddings ? embed_ : head_.weight, head_.bias, normed_, logits_);
  for (float& logit : logits_) {
    logit *= config_.logit_scale;
    if (config_.logit_cap != 0) logit = config_.logit_cap * std::tanh(logit / config_.logit_cap);
  }
  return logits_;
}

void Reference::add_result(const NormWeights& norm, std::span<float> result) {
  if (config_.post_norms)
    tierd::normalize(config_.norm, config_.norm_eps, norm.weight, norm.bias, result, result);
  for (size_t i = 0; i < x_.size(); ++i) x_[i] += config_.residual_scale * result[i];
}

// x = embedding of the token (+ the learned position)
void Reference::embed(uint32_t token, uint32_t position) {
  const uint64_t d = config_.d_model;
  for (uint64_t i = 0; i < d; ++i) x_[i] = config_.embed_scale * embed_[token * d + i];
  if (config_.position == PositionKind::learned) {
    const uint64_t row = uint64_t{position} + config_.position_offset;
    for (uint64_t i = 0; i < d; ++i) x_[i] += position_[row * d + i];
  }
}

// delta = o(attention(q, k, v)), each of the normed x
void Reference::attention(Layer& layer, uint32_t position) {
  const uint64_t kv_dim = config_.kv_dim();
  TIERD_CHECK_MSG(layer.keys.size() >= position * kv_dim, "positions are consecutive");
  layer.keys.resize((uint64_t{position} + 1) * kv_dim);
  layer.values.resize((uint64_t{position} + 1) * kv_dim);
  const std::span<float> k = std::span(layer.keys).subspan(position * kv_dim);
  const std::span<float> v = std::span(layer.values).subspan(position * kv_dim);
  matmul(layer.q.weight, layer.q.bias, normed_, q_);
  matmul(layer.k.weight, layer.k.bias, normed_, k);
  matmul(layer.v.weight, layer.v.bias, normed_, v);
  if (config_.qk_norm) {
    normalize_heads(layer.q_norm, q_);
    normalize_heads(layer.k_norm, k);
  }
  if (config_.qkv_clip > 0) {
    for (const std::span<float> part : {std::span(q_), k, v}) {
      for (float& value : part) value = std::clamp(value, -config_.qkv_clip, config_.qkv_clip);
    }
  }
  if (layer.turns) {
    const std::vector<float>& frequencies = layer.turns_locally ? local_frequencies_ : frequencies_;
    rotate(frequencies, q_, position);
    rotate(frequencies, k, position);
  }
  if (config_.query_growth != 0) {
    const float spans = std::floor(static_cast<float>(position) / static_cast<float>(config_.growth_span));
    for (float& value : q_) value *= 1 + config_.query_growth * std::log(1 + spans);
  }

  attend(layer, position);
  matmul(layer.o.weight, layer.o.bias, mixed_, delta_);
}

// mixed[h] = sum over positions p of softmax(q[h] . k[p] / sqrt(head_dim)) * v[p]; heads share keys and
// values in runs of n_heads / n_kv_heads.
void Reference::attend(const Layer& layer, uint32_t position) {
  const uint32_t head_dim = config_.head_dim;
  const uint64_t kv_dim = config_.kv_dim();
  const uint32_t heads_per_kv = config_.n_heads / config_.n_kv_heads;
  const uint32_t window = layer.window;
  const uint32_t first = window != 0 && position + 1 > window ? position + 1 - window : 0;
  const float scale =
      config_.attention_scale != 0 ? config_.attention_scale : 1.0f / std::sqrt(static_cast<float>(head_dim));
  const float cap = config_.attention_cap;

  const uint32_t positions = position + 1 - first;
  for (uint32_t h = 0; h < config_.n_heads; ++h) {
    scores_.resize(positions);
    const float* q = &q_[h * head_dim];
    const uint64_t kv_head = uint64_t{h / heads_per_kv} * head_dim;
    for (uint32_t p = first; p <= position; ++p) {
      const float* k = &layer.keys[p * kv_dim + kv_head];
      float sum = 0;
      for (uint32_t i = 0; i < head_dim; ++i) sum += q[i] * k[i];
      scores_[p - first] = cap == 0 ? sum * scale : cap * std::tanh(sum * scale / cap);
    }
    if (!layer.sinks.empty()) scores_.push_back(layer.sinks[h]);
    softmax(scores_);
    float* mixed = &mixed_[h * head_dim];
    std::fill(mixed, mixed + head_dim, 0.0f);
    for (uint32_t p = first; p <= position; ++p) {
      const float* v = &layer.values[p * kv_dim + kv_head];
      for (uint32_t i = 0; i < head_dim; ++i) mixed[i] += scores_[p - first] * v[i];
    }
  }
}

// Returns the experts' scores for the choice; those of groups that are not used are lowest.
std::vector<float> Reference::ranks(const Layer& layer) const {
  std::vector<float> ranks = routing_;
  for (size_t e = 0; e < layer.correction.size(); ++e) ranks[e] += layer.correction[e];
  if (config_.expert_groups == 0) return ranks;
  const uint32_t size = config_.n_experts / config_.expert_groups;
  std::vector<std::pair<float, uint32_t>> groups;
  for (uint32_t g = 0; g < config_.expert_groups; ++g) {
    std::vector<float> best(ranks.begin() + g * size, ranks.begin() + (g + 1) * size);
    std::sort(best.rbegin(), best.rend());
    groups.emplace_back(-std::accumulate(best.begin(), best.begin() + config_.group_best, 0.0f), g);
  }
  std::sort(groups.begin(), groups.end());
  for (uint32_t g = config_.expert_groups_used; g < groups.size(); ++g)
    std::fill_n(ranks.begin() + groups[g].second * size, size, -std::numeric_limits<float>::infinity());
  return ranks;
}

// Adds the results of the experts with the largest scores, each times its weight, among equal ones those with
// the lowest numbers, and that of the network beside them.
void Reference::mixture(const Layer& layer) {
  matmul(layer.router.weight, layer.router.bias, normed_, routing_);
  if (config_.router_score == RouterScore::softmax) {
    softmax(routing_);
  } else {
    for (float& score : routing_) score = 1.0f / (1.0f + std::exp(-score));
  }
  const std::vector<float> order = ranks(layer);
  std::vector<uint32_t> experts(config_.n_experts);
  std::iota(experts.begin(), experts.end(), 0);
  std::stable_sort(experts.begin(), experts.end(),
                   [&](uint32_t a, uint32_t b) { return order[a] > order[b]; });
  experts.resize(config_.experts_per_token);
  float sum = 0;
  for (const uint32_t e : experts) sum += routing_[e];
  std::sort(experts.begin(), experts.end());
  std::fill(delta_.begin(), delta_.end(), 0.0f);
  for (const uint32_t e : experts) {
    const float weight = config_.expert_weights_sum_to_one ? routing_[e] / sum : routing_[e];
    feed_forward(layer.experts[e], expert_);
    for (size_t i = 0; i < delta_.size(); ++i) delta_[i] += weight * config_.expert_scale * expert_[i];
  }
  if (layer.shared.up.weight.empty()) return;
  feed_forward(layer.shared, expert_);
  float gate = 1;
  if (!layer.shared_gate.empty()) {
    matmul(layer.shared_gate, {}, normed_, std::span(&gate, 1));
    gate = 1.0f / (1.0f + std::exp(-gate));
  }
  for (size_t i = 0; i < delta_.size(); ++i) delta_[i] += gate * expert_[i];
}

// out = down(act(gate x) * up x), or down(act(up x)), of the normed x
void Reference::feed_forward(const FeedForward& ffn, std::span<float> out) {
  const auto activated = [&](float x) {
    return activate(config_.activation, config_.activation_threshold, x);
  };
  up_.resize(ffn.up.weight.size() / normed_.size());
  hidden_.resize(up_.size());
  matmul(ffn.up.weight, ffn.up.bias, normed_, up_);
  if (config_.gated) {
    matmul(ffn.gate.weight, ffn.gate.bias, normed_, hidden_);
    const float most = config_.activation_threshold;
    for (size_t i = 0; i < hidden_.size(); ++i) {
      if (config_.activation == Activation::swiglu_oai) up_[i] = 1 + std::clamp(up_[i], -most, most);
      hidden_[i] = activated(hidden_[i]) * up_[i];
    }
  } else {
    for (size_t i = 0; i < hidden_.size(); ++i) hidden_[i] = activated(up_[i]);
  }
  matmul(ffn.down.weight, ffn.down.bias, hidden_, out);
}

void Reference::normalize(const NormWeights& norm) {
  if (norm.weight.empty()) {  // a model without norms of inputs
    normed_ = x_;
    return;
  }
  tierd::normalize(config_.norm, config_.norm_eps, norm.weight, norm.bias, x_, normed_);
}

void Reference::normalize_heads(const NormWeights& norm, std::span<float> heads) {
  const size_t width = config_.qk_norm_wide ? heads.size() : config_.head_dim;
  for (size_t at = 0; at < heads.size(); at += width) {
    const std::span<float> head = heads.subspan(at, width);
    tierd::normalize(config_.norm, config_.norm_eps, norm.weight, norm.bias, head, head);
  }
}

// Rotates pair i of each head by position * frequency[i]. The pair is (2i, 2i + 1) or (i, i + rotary_dim/2).
void Reference::rotate(std::span<const float> frequencies, std::span<float> heads, uint32_t position) {
  const uint32_t half = config_.rotary_dim() / 2;
  const bool interleaved = config_.position == PositionKind::rope_interleaved;
  for (size_t head = 0; head < heads.size(); head += config_.head_dim) {
    for (uint32_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * frequencies[i];
      const float cosine = std::cos(angle);
      const float sine = std::sin(angle);
      float& a = heads[head + (interleaved ? 2 * i : i)];
      float& b = heads[head + (interleaved ? 2 * i + 1 : i + half)];
      const float rotated = a * cosine - b * sine;
      b = (a * sine + b * cosine) * config_.rope.magnitude;
      a = rotated * config_.rope.magnitude;
    }
  }
}

}  // namespace tierd
