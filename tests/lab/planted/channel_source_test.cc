#include "tools/lab/planted/channel_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/base/file.h"
#include "core/base/random.h"
#include "core/model/shape_file.h"
#include "core/store/channel_order.h"
#include "tests/base/temp_folder.h"
#include "tests/lab/planted/planted_forward.h"
#include "tests/store/memory_source.h"
#include "tools/lab/planted/channel_rates.h"
#include "tools/lab/planted/vocab.h"

namespace tierd {
namespace {

using testing::HasSubstr;

ModelConfig small_shape() {
  ModelConfig config = small_llama();
  config.d_model = 768;
  config.n_heads = 6;
  config.n_kv_heads = 3;
  config.head_dim = 128;
  config.d_ff = 2048;
  config.vocab_size = kFirstPlantedWord + 512;
  return config;
}

ChannelProfile activeflow() {
  const auto profile = read_channel_profile("activeflow");
  EXPECT_TRUE(profile.ok() && profile->has_value());
  return **profile;
}

std::unique_ptr<ChannelSource> make(const ModelConfig& shape, Encoding encoding = Encoding::q8_0) {
  auto source = ChannelSource::make(shape, activeflow(), encoding, 1);
  EXPECT_TRUE(source.ok()) << source.error().line();
  return std::move(*source);
}

// Returns the share of the larger half that two tokens have in common when rates follow the profile: E[p^2] /
// E[p].
double expected_overlap(const ChannelProfile& p) {
  return (p.a + 1) / (p.a + p.b + 1);
}

// Returns the share of each row's larger half that the next row has as well.
double overlap(const Matrix& x) {
  std::vector<uint8_t> before(x.cols), now(x.cols);
  uint64_t shared = 0;
  for (uint32_t row = 0; row < x.rows; ++row) {
    std::vector<uint32_t> order(x.cols);
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::nth_element(order, order.begin() + x.cols / 2, std::greater(),
                             [&](uint32_t col) { return std::abs(x.at(row, col)); });
    std::ranges::fill(now, 0);
    for (uint32_t i = 0; i < x.cols / 2; ++i) now[order[i]] = 1;
    for (uint32_t col = 0; col < x.cols; ++col) shared += before[col] & now[col];
    std::swap(before, now);
  }
  return static_cast<double>(shared) / ((x.rows - 1) * (x.cols / 2));
}

Matrix normed(Matrix x, const Matrix& weight) {
  for (uint32_t row = 0; row < x.rows; ++row) {
    double squares = 0;
    for (uint32_t col = 0; col < x.cols; ++col)
      squares += static_cast<double>(x.at(row, col)) * x.at(row, col);
    for (uint32_t col = 0; col < x.cols; ++col)
      x.at(row, col) *= static_cast<float>(weight.at(0, col) / std::sqrt(squares / x.cols));
  }
  return x;
}

class ChannelBytes : public testing::TestWithParam<Encoding> {};

// In one piece, and in pieces with arbitrary ends.
TEST_P(ChannelBytes, AnyRangeIsTheSame) {
  const auto source = make(small_shape(), GetParam());
  Random random(3);
  for (const TensorInfo& tensor : source->tensors()) {
    SCOPED_TRACE(tensor.name);
    std::vector<std::byte> bytes(tensor.bytes());
    ASSERT_TRUE(source->read(tensor, 0, bytes).ok());
    for (int piece = 0; piece < 10; ++piece) {
      const uint64_t value = tensor.rows == 1 ? sizeof(float) : 1;
      const uint64_t from = random.below(static_cast<uint32_t>(tensor.bytes() / value)) * value;
      const uint64_t most = std::min<uint64_t>(tensor.bytes() - from, 5000);
      std::vector<std::byte> part((random.below(static_cast<uint32_t>(most / value)) + 1) * value);
      ASSERT_TRUE(source->read(tensor, from, part).ok());
      ASSERT_TRUE(std::equal(part.begin(), part.end(), bytes.begin() + static_cast<std::ptrdiff_t>(from)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ChannelBytes, testing::ValuesIn(kAllEncodings),
                         [](const auto& test) { return std::string(name(test.param)); });

// Channels of each factor times normal values. The rate at which each is in the larger half follows the beta
// distribution.
TEST(ChannelFactors, RatesComeOut) {
  const ChannelProfile profile = activeflow();
  std::vector<float> sample(1 << 16);
  fill_normal(random_key(1, 0, Drawn::sample, 0), sample);
  for (float& value : sample) value = std::abs(value);
  const ChannelFactors factors(profile, sample);
  Matrix x(64, 4096);
  for (uint32_t token = 0; token < x.rows; ++token) {
    std::vector<float> normal(x.cols);
    fill_normal(random_key(2, token, Drawn::sample, 0), normal);
    for (uint32_t i = 0; i < x.cols; ++i) x.at(token, i) = normal[i] * factors.of(mix32(i));
  }
  EXPECT_NEAR(overlap(x), expected_overlap(profile), 0.01);
  uint64_t above = 0;
  for (const float value : x.values) above += std::abs(value) > 0.6745f;
  EXPECT_NEAR(static_cast<double>(above) / static_cast<double>(x.values.size()), 0.5, 0.01);
}

// Compares the inputs of the first layer's projections and of its down matrix, from a forward pass without
// attention, with the profile, and how much the layer changes the stream.
TEST(ChannelSource, InputsAreSharedAsTheProfileSays) {
  const auto source = make(small_shape());
  Matrix x(96, small_shape().d_model);
  const Matrix embed = tensor_of(*source, "embed");
  std::copy_n(embed.values.begin() + std::ptrdiff_t{300} * x.cols, x.values.size(), x.values.begin());
  const double expected = expected_overlap(activeflow());
  EXPECT_NEAR(overlap(normed(x, tensor_of(*source, "layers.0.attn_norm"))), expected, 0.03);
  const Matrix in = normed(x, tensor_of(*source, "layers.0.ffn_norm"));
  EXPECT_NEAR(overlap(in), expected, 0.03);
  EXPECT_NEAR(overlap(linear(tensor_of(*source, "layers.0.v"), in)), expected, 0.06);
  Matrix product = linear(tensor_of(*source, "layers.0.gate"), in);
  const Matrix up = linear(tensor_of(*source, "layers.0.up"), in);
  for (size_t i = 0; i < product.values.size(); ++i) {
    const float g = product.values[i];
    product.values[i] = g / (1 + std::exp(-g)) * up.values[i];
  }
  EXPECT_NEAR(overlap(product), expected, 0.03);
  const Matrix added = linear(tensor_of(*source, "layers.0.down"), product);
  double squares = 0;
  for (const float value : added.values) squares += static_cast<double>(value) * value;
  const double half = (1 / (0.95 * 0.95) - 1) / 2;
  EXPECT_NEAR(squares / static_cast<double>(added.values.size()), half, 0.3 * half);
}

// Returns how often each channel of x is in the larger half of its row.
std::vector<float> rates_of(const Matrix& x) {
  std::vector<float> rates(x.cols, 0);
  for (uint32_t row = 0; row < x.rows; ++row) {
    std::vector<uint32_t> order(x.cols);
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::nth_element(order, order.begin() + x.cols / 2, std::greater(),
                             [&](uint32_t i) { return std::abs(x.at(row, i)); });
    for (uint32_t k = 0; k < x.cols / 2; ++k) rates[order[k]] += 1.0F / static_cast<float>(x.rows);
  }
  return rates;
}

TEST(ChannelSource, TellsTheRatesThatAForwardPassShows) {
  const auto source = make(small_shape());
  Matrix x(192, small_shape().d_model);
  const Matrix embed = tensor_of(*source, "embed");
  std::copy_n(embed.values.begin() + std::ptrdiff_t{300} * x.cols, x.values.size(), x.values.begin());
  const Matrix in = normed(x, tensor_of(*source, "layers.0.ffn_norm"));
  const auto difference = [](const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
    return sum / static_cast<double>(a.size());
  };
  EXPECT_LT(difference(rates_of(in), source->planted_rates("layers.0.ffn_norm")), 0.04);
  EXPECT_LT(
      difference(rates_of(linear(tensor_of(*source, "layers.0.v"), in)), source->planted_rates("layers.0.v")),
      0.06);
  EXPECT_GT(difference(rates_of(in), source->planted_rates("layers.1.ffn_norm")), 0.1) << "another layer's";
}

TEST(ChannelSource, WritesItsRatesForAStoresOrder) {
  ModelConfig shape = small_shape();
  shape.n_experts = 4;
  shape.experts_per_token = 2;
  shape.d_ff = 256;
  const auto source = make(shape);
  const TempFolder folder;
  const std::string path = folder.path() + "/rates.safetensors";
  ASSERT_TRUE(write_channel_rates(*source, path).ok());
  std::shared_ptr<const TensorSource> model = make(shape);
  const auto ordered = in_order_of_use(model, {.file = path, .experts = true});
  ASSERT_TRUE(ordered.ok()) << ordered.error().line();
  const auto rates = source->planted_rates("layers.1.experts.3.up");
  const auto order = channel_order(**ordered, "layers.1.experts.3.down");
  ASSERT_TRUE(order.has_value());
  EXPECT_TRUE(
      std::ranges::is_sorted(*order, std::greater(), [&](uint32_t channel) { return rates[channel]; }));
  // Two query heads share a KV head, so their channels are neighbours in the order.
  const auto of_o = channel_order(**ordered, "layers.0.o");
  ASSERT_TRUE(of_o.has_value());
  EXPECT_EQ((*of_o)[0] % shape.head_dim, (*of_o)[1] % shape.head_dim);
}

TEST(ChannelSource, TheHeadAsksForTheNextId) {
  const auto source = make(small_shape(), Encoding::f32);
  const Matrix embed = tensor_of(*source, "embed"), head = tensor_of(*source, "head");
  const float factor = embed.at(0, 0) / head.at(1, 0);
  for (uint32_t id = 0; id < embed.rows; ++id) {
    for (uint32_t i = 0; i < embed.cols; ++i)
      ASSERT_FLOAT_EQ(embed.at(id, i), factor * head.at((id + 1) % embed.rows, i)) << id << " " << i;
  }
}

TEST(ChannelSource, ExpertsDiffer) {
  ModelConfig shape = small_shape();
  shape.n_experts = 4;
  shape.experts_per_token = 2;
  shape.d_ff = 256;
  const auto source = make(shape);
  const Matrix one = tensor_of(*source, "layers.1.experts.0.up"),
               two = tensor_of(*source, "layers.1.experts.3.up");
  EXPECT_NE(one.values, two.values);
}

TEST(ChannelSource, RefusesOtherShapes) {
  const auto refused = [](auto change) {
    ModelConfig shape = small_shape();
    change(shape);
    const auto source = ChannelSource::make(shape, activeflow(), Encoding::q4_0, 1);
    return source.ok() ? "accepted" : source.error().line();
  };
  EXPECT_EQ(refused([](ModelConfig&) {}), "accepted");
  EXPECT_THAT(refused([](ModelConfig& c) { c.activation = Activation::relu; }),
              HasSubstr("a gated FFN with SiLU"));
  EXPECT_THAT(refused([](ModelConfig& c) { c.gated = false; }), HasSubstr("a gated FFN with SiLU"));
  EXPECT_THAT(refused([](ModelConfig& c) { c.norm = Norm::layer; }), HasSubstr("an RMS norm"));
  EXPECT_THAT(refused([](ModelConfig& c) { c.qk_norm = true; }), HasSubstr("an RMS norm"));
  EXPECT_THAT(refused([](ModelConfig& c) { c.position = PositionKind::learned; }),
              HasSubstr("rotary positions"));
  EXPECT_THAT(refused([](ModelConfig& c) { c.vocab_size = kFirstPlantedWord; }), HasSubstr("too small"));
  EXPECT_THAT(refused([](ModelConfig& c) { c.d_ff = 300; }), HasSubstr("needs a multiple of 32"));
}

TEST(ChannelProfileFile, ErrorsNameTheLine) {
  EXPECT_FALSE(read_channel_profile("flash")->has_value()) << "it plants neurons";
  const auto good = read_whole_file((shapes_folder() / "planted/activeflow.toml").string(), 1 << 20);
  ASSERT_TRUE(good.ok());
  const TempFolder folder;
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = *good;
    text.replace(text.find(from), from.size(), to);
    const auto profile = read_channel_profile(folder.write("own.toml", text));
    return profile.ok() ? "accepted" : profile.error().line();
  };
  EXPECT_EQ(refused("cosine = 0.95", "cosine = 0.9"), "accepted");
  EXPECT_THAT(refused("cosine = 0.95", "cosine = 1"), HasSubstr("'hidden.cosine' is 1; a number from"));
  EXPECT_THAT(refused("b = 4.25", "b = 1.5"), HasSubstr("'rates.b' is 1.5; a number from 2"));
  EXPECT_THAT(refused("b = 4.25", "c = 4.25"), HasSubstr("'rates.b' is missing"));
  EXPECT_THAT(refused("[rates]", "[rate]"), HasSubstr("'rates' is missing; a table"));
  EXPECT_THAT(refused("[hidden]", "[hidden"), HasSubstr("own.toml:"));
  EXPECT_EQ(read_channel_profile("/no/such.toml").code(), Code::not_found);
}

}  // namespace
}  // namespace tierd
