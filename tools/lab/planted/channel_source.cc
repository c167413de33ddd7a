#include "tools/lab/planted/channel_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/align.h"
#include "core/base/check.h"
#include "core/model/layout/block_layout.h"
#include "core/model/layout/codec.h"
#include "tools/lab/planted/vocab.h"

namespace tierd {
namespace {

constexpr uint32_t kChannelGeneratorVersion = 1;  // part of the fingerprint: raise it when the values change
constexpr uint32_t kSample = 1u << 16;  // values from which a distribution's quantiles are estimated
// The deviation of SyntheticSource's weights, times the root of the row length.
constexpr double kDeviation = 0.5;
constexpr double kVariance = kDeviation * kDeviation;

// Refuses a model with another block than the recipe's: it would run, with other statistics.
Status check_channel_shape(const ModelConfig& c) {
  const auto refuse = [&](std::string_view what) {
    return Error{Code::unsupported, c.name,
                 fmt::format("a model with planted channels requires {}, as in Llama", what)};
  };
  if (!has_plain_layers(c)) return refuse("layers");
  if (c.norm != Norm::rms || c.norm_bias || !c.ffn_norm || c.parallel || c.qk_norm)
    return refuse("an RMS norm before attention and one before the FFN, and no other");
  if (c.activation != Activation::silu || !c.gated) return refuse("a gated FFN with SiLU");
  if (c.position == PositionKind::learned || c.qkv_relu || c.qkv_clip != 0)
    return refuse("rotary positions, and queries and keys as they are");
  return check_planted_vocab(c);
}

// Multiplies the values of whole blocks. The factors of a block are multiplied and rounded, and nothing else
// is; those of mxfp4 are powers of two, so it is encoded anew.
void multiply(Encoding encoding, std::span<std::byte> blocks, float factor) {
  const uint32_t bytes = block_bytes(encoding);
  if (is_quantized(encoding) && encoding != Encoding::mxfp4) {
    for (size_t at = factors_at(encoding); at < blocks.size(); at += bytes) {
      for (uint32_t i = 0; i < (has_min(encoding) ? 2u : 1u); ++i) {
        uint16_t half;
        std::memcpy(&half, &blocks[at + i * sizeof half], sizeof half);
        half = f32_to_f16(f16_to_f32(half) * factor);
        std::memcpy(&blocks[at + i * sizeof half], &half, sizeof half);
      }
    }
    return;
  }
  std::array<float, 64> values;
  const size_t at_once = values.size() / block_values(encoding);  // blocks
  for (size_t at = 0; at < blocks.size(); at += at_once * bytes) {
    const size_t count = std::min(at_once, (blocks.size() - at) / bytes);
    const std::span some = std::span(values).first(count * block_values(encoding));
    decode(encoding, blocks.subspan(at, count * bytes), some);
    for (float& value : some) value *= factor;
    encode(encoding, some, blocks.subspan(at, count * bytes));
  }
}

std::vector<float> normal_sample(uint64_t seed, Drawn drawn) {
  std::vector<float> sample(kSample);
  fill_normal(random_key(seed, 0, drawn, 0), sample);
  return sample;
}

}  // namespace

Result<std::unique_ptr<ChannelSource>> ChannelSource::make(ModelConfig shape, const ChannelProfile& profile,
                                                           Encoding encoding, uint64_t seed) {
  TIERD_TRY(check_channel_shape(shape));
  shape.tied_embeddings = false;
  std::unique_ptr<ChannelSource> source(new ChannelSource);
  source->path_ = fmt::format("planted: {}, seed {}", profile.name, seed);
  source->vocab_ = planted_vocab(shape.vocab_size);
  source->seed_ = seed;
  TIERD_ASSIGN(source->random_, SyntheticSource::make(std::move(shape), encoding, seed));
  source->fingerprint_ =
      fmt::format("{} of {} by {} {} / {} / {} generator {}", source->path_, source->random_->fingerprint(),
                  profile.a, profile.b, profile.cosine, profile.score_variance, kChannelGeneratorVersion);
  source->plant(profile);
  return source;
}

void ChannelSource::plant(const ChannelProfile& profile) {
  std::vector<float> normal = normal_sample(seed_, Drawn::sample);
  for (float& value : normal) value = std::abs(value);
  normed_.emplace(profile, std::move(normal));
  // The variance of a matrix's product with a normed hidden state.
  const double variance = kVariance * normed_->mean_square();
  const auto deviation = static_cast<float>(std::sqrt(variance));
  std::vector<float> product = normal_sample(seed_, Drawn::sample);
  const std::vector<float> gate = normal_sample(seed_, Drawn::gate_sample);
  double product_square = 0;
  for (size_t i = 0; i < product.size(); ++i) {
    const float g = gate[i] * deviation;
    product[i] = std::abs(product[i] * deviation * g / (1 + std::exp(-g)));
    product_square += static_cast<double>(product[i]) * product[i] / kSample;
  }
  products_.emplace(profile, std::move(product));

  // The hidden state's variance is that of the embeddings, 1, and grows, so the first layer changes it most.
  const double added = 1 / (profile.cosine * profile.cosine) - 1;
  const auto to_add = [&](double input_square) {
    return static_cast<float>(std::sqrt(added / 2 / (kVariance * input_square)));
  };
  embed_ = static_cast<float>(std::sqrt(config().d_model) / kDeviation);
  query_ = static_cast<float>(std::sqrt(profile.score_variance) / variance);
  o_ = to_add(variance * normed_->mean_square());  // for a head that looks at one token; other heads add less
  down_ = to_add(product_square * products_->mean_square());
  for (const TensorInfo& tensor : tensors()) contents_.emplace(tensor.name, content_of(tensor.name));
}

ChannelSource::Content ChannelSource::content_of(std::string_view name) const {
  if (name == "embed") return {.factor = embed_};
  if (name == "head") return {.is_head = true};
  constexpr std::string_view kLayers = "layers.";
  if (!name.starts_with(kLayers)) return {};
  name.remove_prefix(kLayers.size());
  const auto layer = static_cast<uint32_t>(std::stoul(std::string(name)));
  name.remove_prefix(name.find('.') + 1);
  uint64_t expert = 0;
  constexpr std::string_view kExperts = "experts.";
  if (name.starts_with(kExperts)) {
    name.remove_prefix(kExperts.size());
    expert = std::stoul(std::string(name));
    name.remove_prefix(name.find('.') + 1);
  }
  const auto by_rates = [&](const ChannelFactors& channels, Drawn operand) {
    return Content{.channels = &channels, .rates = random_key(seed_, layer, operand, expert)};
  };
  if (name == "attn_norm") return by_rates(*normed_, Drawn::qkv_rates);
  if (name == "v") return by_rates(*normed_, Drawn::o_rates);
  if (name == "ffn_norm") return by_rates(*normed_, Drawn::up_rates);
  if (name == "up") return by_rates(*products_, Drawn::down_rates);
  if (name == "q") return {.factor = query_};
  if (name == "o") return {.factor = o_};
  if (name == "down") return {.factor = down_};
  return {};
}

std::vector<float> ChannelSource::planted_rates(std::string_view name) const {
  const Content& content = contents_.at(name);
  const TensorInfo& tensor = *find(name);
  TIERD_CHECK(content.channels != nullptr);
  std::vector<float> rates(tensor.rows == 1 ? tensor.cols : tensor.rows);
  for (uint32_t i = 0; i < rates.size(); ++i)
    rates[i] = content.channels->rate(random_word(content.rates, i));
  return rates;
}

Status ChannelSource::read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const {
  const Content& content = contents_.at(tensor.name);
  if (content.is_head) return read_head(offset, out);
  if (content.factor == 1 && content.channels == nullptr) return random_->read(tensor, offset, out);
  const uint64_t block = block_bytes(tensor.encoding);
  const uint64_t begin = offset / block * block;
  std::vector<std::byte> blocks(align_up(offset + out.size(), block) - begin);
  TIERD_TRY(random_->read(tensor, begin, blocks));
  // Each value of a vector, and each row of a matrix, is a channel.
  const uint64_t channel_bytes = tensor.rows == 1 ? block : encoded_bytes(tensor.encoding, tensor.cols);
  for (uint64_t at = begin, end = begin + blocks.size(); at < end;) {
    const uint64_t channel = at / channel_bytes;
    const uint64_t next = std::min((channel + 1) * channel_bytes, end);
    multiply(tensor.encoding, std::span(blocks).subspan(at - begin, next - at), content.of(channel));
    at = next;
  }
  std::memcpy(out.data(), blocks.data() + (offset - begin), out.size());
  return {};
}

// Row v is the embedding of v - 1, so the next token's logit is the largest.
Status ChannelSource::read_head(uint64_t offset, std::span<std::byte> out) const {
  const TensorInfo& embed = *find("embed");
  const uint64_t row_bytes = encoded_bytes(embed.encoding, embed.cols);
  for (uint64_t done = 0; done < out.size();) {
    const uint64_t row = (offset + done) / row_bytes, within = (offset + done) % row_bytes;
    const uint64_t n = std::min(row_bytes - within, out.size() - done);
    const uint64_t token = (row + embed.rows - 1) % embed.rows;
    TIERD_TRY(random_->read(embed, token * row_bytes + within, out.subspan(done, n)));
    done += n;
  }
  return {};
}

}  // namespace tierd
