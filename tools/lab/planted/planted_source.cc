#include "tools/lab/planted/planted_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/align.h"
#include "core/base/check.h"
#include "core/model/layout/codec.h"
#include "tools/lab/planted/counter_random.h"
#include "tools/lab/planted/embedding.h"
#include "tools/lab/planted/kernels.h"
#include "tools/lab/planted/vocab.h"

namespace tierd {
namespace {

constexpr uint32_t kGeneratorVersion = 1;  // part of the fingerprint: raise it when the values change
constexpr uint64_t kRowsAtOnce = 64;

// Refuses a model with another block than the recipe's: it would run, with other statistics.
Status check_shape(const ModelConfig& c) {
  const auto refuse = [&](std::string_view what) {
    return Error{Code::unsupported, c.name, fmt::format("a planted model requires {}, as in OPT", what)};
  };
  if (!has_plain_layers(c)) return refuse("layers");
  if (c.norm != Norm::layer || !c.norm_bias || !c.ffn_norm || c.qk_norm || c.parallel)
    return refuse("a layer norm with bias before attention and one before the FFN");
  if (c.activation != Activation::relu || c.activation_threshold != 0 || c.gated || !c.ffn_bias)
    return refuse("an FFN of two matrices with biases and ReLU");
  if (c.position != PositionKind::learned) return refuse("learned positions");
  if (c.head_bias) return refuse("a head without bias");
  return check_planted_vocab(c);
}

// Lists every number of the profile, so that a store of other numbers is another store.
std::string numbers_of(const PlantedProfile& p) {
  return fmt::format("{} {} {} {} / {} {} {} {} {} {} / {} {} {} / {} {} {} {} {}", p.first, p.middle, p.last,
                     p.mean, p.false_negatives, p.false_positives, p.threshold_spread, p.rank, p.last_rank,
                     p.last_share, p.document_share, p.run_share, p.run_length, p.norm_shift, p.ffn_variance,
                     p.attention_variance, p.score_variance, p.position_variance);
}

void encode_values(Encoding encoding, std::span<const float> in, std::span<std::byte> out) {
  if (encoding == Encoding::f16) {
    planted_kernels().to_f16(in, reinterpret_cast<uint16_t*>(out.data()));
  } else {
    std::memcpy(out.data(), in.data(), in.size_bytes());
  }
}

}  // namespace

Result<std::unique_ptr<PlantedSource>> PlantedSource::make(ModelConfig shape, PlantedProfile profile,
                                                           Encoding encoding, uint64_t seed) {
  TIERD_TRY(check_shape(shape));
  if (encoding != Encoding::f16 && encoding != Encoding::f32) {
    return Error{Code::unsupported, "--encoding",
                 fmt::format("planted weights are f16 or f32, found {}", tierd::name(encoding))};
  }
  TIERD_ASSIGN(const std::vector<double> shares, active_shares(profile, shape.n_layers));
  std::unique_ptr<PlantedSource> source(new PlantedSource);
  source->path_ = fmt::format("planted: {}, seed {}", profile.name, seed);
  source->fingerprint_ = fmt::format("{} of {} {} by {} generator {}", source->path_, shape.name,
                                     tierd::name(encoding), numbers_of(profile), kGeneratorVersion);
  source->seed_ = seed;
  source->vocab_ = planted_vocab(shape.vocab_size);
  source->profile_ = std::move(profile);
  shape.tied_embeddings = false;
  shape.qkv_bias = false;
  shape.o_bias = false;
  source->config_ = std::move(shape);
  const ModelConfig& c = source->config_;
  for (uint32_t layer = 0; layer < c.n_layers; ++layer) {
    const uint32_t rank = predictor_rank(source->profile_, layer, c.n_layers, c.d_model);
    source->ffns_.push_back(
        std::make_unique<PlantedFfn>(source->profile_, layer_profile(shares[layer], source->profile_),
                                     PlantedFfnShape{c.d_model, c.d_ff, rank}, seed, layer));
  }
  for (const TensorSpec& spec : required_tensors(c)) {
    TensorInfo info;
    info.name = spec.name;
    info.rows = spec.rows;
    info.cols = spec.cols;
    info.encoding = spec.rows == 1 || spec.name == "position" ? Encoding::f32 : encoding;
    source->tensors_.push_back(std::move(info));
  }
  for (const TensorInfo& tensor : source->tensors_)
    source->contents_.emplace(tensor.name, source->content_of(tensor));
  return source;
}

PlantedSource::Content PlantedSource::content_of(const TensorInfo& tensor) const {
  constexpr std::string_view kLayers = "layers.";
  std::string_view name = tensor.name;
  if (name == "embed") return {Kind::embed};
  if (name == "head") return {Kind::head};
  if (name == "position") return {Kind::uniform, 0, std::sqrt(profile_.position_variance), Drawn::position};
  if (name == "out_norm.bias") return {Kind::constant, 0, 0};
  if (name.ends_with("norm")) return {Kind::constant, 0, 1};
  if (name.ends_with("norm.bias")) return {Kind::constant, 0, profile_.norm_shift};

  TIERD_CHECK_MSG(name.starts_with(kLayers), name);
  name.remove_prefix(kLayers.size());
  const auto layer = static_cast<uint32_t>(std::stoul(std::string(name)));
  name.remove_prefix(name.find('.') + 1);
  const auto uniform = [&](Drawn drawn, double variance) {
    return Content{Kind::uniform, layer, std::sqrt(variance / static_cast<double>(tensor.cols)), drawn};
  };
  if (name == "q") return uniform(Drawn::q, profile_.score_variance);
  if (name == "k") return uniform(Drawn::k, profile_.score_variance);
  if (name == "v") return uniform(Drawn::v, 1);
  if (name == "o") return uniform(Drawn::o, profile_.attention_variance);
  if (name == "up") return {Kind::up, layer};
  if (name == "up.bias") return {Kind::up_bias, layer};
  if (name == "down") return {Kind::down, layer};
  TIERD_CHECK_MSG(name == "down.bias", tensor.name);
  return {Kind::down_bias, layer};
}

Status PlantedSource::read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const {
  TIERD_CHECK(offset <= tensor.bytes() && out.size() <= tensor.bytes() - offset);
  const Content& content = contents_.at(tensor.name);
  const bool by_rows = content.kind > Kind::down;
  const uint64_t value_bytes = tensor.encoding == Encoding::f16 ? sizeof(uint16_t) : sizeof(float);
  const uint64_t end = divide_up(offset + out.size(), value_bytes);
  PlantedEmbedding embedding(profile_, seed_);
  std::vector<float> values;
  std::vector<std::byte> bytes;
  for (uint64_t at = offset / value_bytes; at < end; at += values.size()) {
    const uint64_t row = at / tensor.cols;
    if (by_rows) {
      at = row * tensor.cols;
      const uint64_t rows = std::min(kRowsAtOnce, divide_up(end, tensor.cols) - row);
      values.resize(rows * tensor.cols);
      make_rows(content, embedding, static_cast<uint32_t>(row), static_cast<uint32_t>(rows), values);
    } else {
      values.resize(std::min(end, (row + 1) * tensor.cols) - at);
      make_piece(content, row, at - row * tensor.cols, values);
    }
    bytes.resize(values.size() * value_bytes);
    encode_values(tensor.encoding, values, bytes);
    // These bytes begin at `begin` of the tensor; only the requested part is copied.
    const uint64_t begin = at * value_bytes;
    const uint64_t from = std::max(begin, offset);
    const uint64_t to = std::min(begin + bytes.size(), offset + out.size());
    std::memcpy(out.data() + (from - offset), bytes.data() + (from - begin), to - from);
  }
  return {};
}

// Makes values [first, first + out.size()) of a row.
void PlantedSource::make_piece(const Content& content, uint64_t row, uint64_t first,
                               std::span<float> out) const {
  const auto first_value = static_cast<uint32_t>(first);
  switch (content.kind) {
    case Kind::constant:
      return std::fill(out.begin(), out.end(), static_cast<float>(content.value));
    case Kind::uniform:
      std::fill(out.begin(), out.end(), 0.0f);
      return planted_kernels().add_uniform(random_key(seed_, content.layer, content.drawn, row), first_value,
                                           uniform_step(content.value), out);
    default:
      return ffns_[content.layer]->down(static_cast<uint32_t>(row), first_value, out);
  }
}

void PlantedSource::make_rows(const Content& content, PlantedEmbedding& embedding, uint32_t first,
                              uint32_t count, std::span<float> out) const {
  const PlantedFfn& ffn = *ffns_[content.layer];
  const uint32_t before = content.kind == Kind::head ? config_.vocab_size - 1 : 0;
  switch (content.kind) {
    case Kind::up:
      return ffn.up(*features(content.layer), first, count, out.data());
    case Kind::up_bias:
      std::ranges::copy(ffn.up_bias(*features(content.layer)), out.begin());
      return;
    case Kind::down_bias:
      std::ranges::copy(ffn.down_bias(*features(content.layer)), out.begin());
      return;
    default:  // row v of the head is the embedding of v - 1, so the next token's logit is the largest
      for (uint32_t i = 0; i < count; ++i) {
        const uint64_t token = (uint64_t{first} + i + before) % config_.vocab_size;
        embedding.row(static_cast<uint32_t>(token),
                      out.subspan(uint64_t{i} * config_.d_model, config_.d_model));
      }
  }
}

std::shared_ptr<const PackedMatrix> PlantedSource::features(uint32_t layer) const {
  const std::lock_guard lock(features_lock_);
  if (features_layer_ != layer) {
    features_ = std::make_shared<const PackedMatrix>(ffns_[layer]->features());
    features_layer_ = layer;
  }
  return features_;
}

}  // namespace tierd
