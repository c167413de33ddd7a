#include "tools/lab/planted/planted_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "core/base/random.h"
#include "tests/lab/planted/small_planted.h"
#include "tools/lab/planted/vocab.h"

namespace tierd {
namespace {

using testing::HasSubstr;

std::vector<std::byte> whole(const TensorSource& source, const TensorInfo& tensor) {
  std::vector<std::byte> bytes(tensor.bytes());
  EXPECT_TRUE(source.read(tensor, 0, bytes).ok());
  return bytes;
}

class PlantedBytes : public testing::TestWithParam<Encoding> {};

// One source makes a tensor in one piece, another in pieces with arbitrary ends and in another order.
TEST_P(PlantedBytes, AnyRangeIsTheSame) {
  const auto one = make_planted(odd_planted_shape(), GetParam());
  const auto other = make_planted(odd_planted_shape(), GetParam());
  Random random(3);
  for (size_t i = one->tensors().size(); i-- > 0;) {
    const TensorInfo& tensor = one->tensors()[i];
    SCOPED_TRACE(tensor.name);
    const std::vector<std::byte> bytes = whole(*one, tensor);
    for (int piece = 0; piece < 10; ++piece) {
      const uint64_t from = random.below(static_cast<uint32_t>(tensor.bytes()));
      std::vector<std::byte> part(random.below(static_cast<uint32_t>(tensor.bytes() - from)) + 1);
      ASSERT_TRUE(other->read(tensor, from, part).ok());
      ASSERT_TRUE(std::equal(part.begin(), part.end(), bytes.begin() + static_cast<std::ptrdiff_t>(from)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBytes, testing::Values(Encoding::f32, Encoding::f16),
                         [](const auto& test) { return std::string(name(test.param)); });

// The first thread that needs them makes a layer's biases and features.
TEST(PlantedSource, ManyThreadsReadTheSame) {
  const auto one = make_planted(odd_planted_shape());
  const auto shared = make_planted(odd_planted_shape());
  std::vector<std::vector<std::byte>> expected;
  for (const TensorInfo& tensor : one->tensors()) expected.push_back(whole(*one, tensor));
  std::vector<std::vector<std::vector<std::byte>>> found(3);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : found) {
      threads.emplace_back([&] {
        for (const TensorInfo& tensor : shared->tensors()) mine.push_back(whole(*shared, tensor));
      });
    }
  }
  for (const auto& each : found) EXPECT_EQ(each, expected);
}

TEST(PlantedSource, SeedsTensorsAndLayersDiffer) {
  const auto one = make_planted(odd_planted_shape(), Encoding::f16, 1);
  const auto two = make_planted(odd_planted_shape(), Encoding::f16, 2);
  EXPECT_NE(one->fingerprint(), two->fingerprint());
  EXPECT_EQ(one->path(), "planted: flash, seed 1");
  for (const char* name : {"embed", "position", "layers.0.q", "layers.0.up", "layers.0.down"})
    EXPECT_NE(whole(*one, *one->find(name)), whole(*two, *two->find(name))) << name;
  EXPECT_NE(whole(*one, *one->find("layers.0.q")), whole(*one, *one->find("layers.0.k")));
  EXPECT_NE(whole(*one, *one->find("layers.0.q")), whole(*one, *one->find("layers.1.q")));
  EXPECT_NE(whole(*one, *one->find("layers.0.up")), whole(*one, *one->find("layers.1.up")));
}

TEST(PlantedSource, AnotherProfileIsAnotherModel) {
  PlantedProfile profile = flash_profile();
  profile.threshold_spread = 1.42;
  const auto other = PlantedSource::make(odd_planted_shape(), profile, Encoding::f16, 1);
  ASSERT_TRUE(other.ok());
  EXPECT_NE(make_planted(odd_planted_shape())->fingerprint(), (*other)->fingerprint());
}

TEST(PlantedSource, TheHeadAsksForTheNextId) {
  const auto source = make_planted(odd_planted_shape());
  const auto embed = *source->read_f32(*source->find("embed"));
  const auto head = *source->read_f32(*source->find("head"));
  const size_t d = source->config().d_model;
  EXPECT_TRUE(std::equal(head.begin() + static_cast<std::ptrdiff_t>(d), head.end(), embed.begin()));
  EXPECT_TRUE(std::equal(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(d),
                         embed.end() - static_cast<std::ptrdiff_t>(d)));
}

TEST(PlantedSource, WeightsHaveTheVarianceOfTheRecipe) {
  const auto source = make_planted(small_planted_shape(), Encoding::f32);
  const PlantedProfile profile = flash_profile();
  const double d = source->config().d_model;
  const std::vector<std::pair<std::string, double>> expected = {
      {"embed", 1},
      {"position", profile.position_variance},
      {"layers.1.q", profile.score_variance / d},
      {"layers.1.k", profile.score_variance / d},
      {"layers.1.v", 1 / d},
      {"layers.1.o", profile.attention_variance / d},
      {"layers.1.up", 1 / d},
  };
  for (const auto& [name, variance] : expected) {
    const auto values = *source->read_f32(*source->find(name));
    double squares = 0;
    for (const float value : values) squares += double{value} * value;
    EXPECT_NEAR(squares / static_cast<double>(values.size()) / variance, 1, 0.03) << name;
  }
  EXPECT_THAT(*source->read_f32(*source->find("layers.3.ffn_norm")), testing::Each(1.0f));
  EXPECT_THAT(*source->read_f32(*source->find("layers.3.attn_norm.bias")), testing::Each(0.1f));
  EXPECT_THAT(*source->read_f32(*source->find("out_norm.bias")), testing::Each(0.0f));
  EXPECT_EQ(source->find("layers.0.q.bias"), nullptr);
}

// b_i = -theta_i s_i - c (the sum of the row): for a normal input, neuron i is active above theta_i.
TEST(PlantedSource, BiasesAreThoseOfTheWholeLayer) {
  const auto source = make_planted(odd_planted_shape(), Encoding::f32);
  const size_t d = source->config().d_model;
  const size_t d_ff = source->config().d_ff;
  const auto up = *source->read_f32(*source->find("layers.2.up"));
  const auto down = *source->read_f32(*source->find("layers.2.down"));
  const auto up_bias = *source->read_f32(*source->find("layers.2.up.bias"));
  const auto down_bias = *source->read_f32(*source->find("layers.2.down.bias"));
  std::vector<double> expected(d);
  for (size_t i = 0; i < d_ff; ++i) {
    double sum = 0;
    double squares = 0;
    for (size_t j = 0; j < d; ++j) {
      sum += up[i * d + j];
      squares += double{up[i * d + j]} * up[i * d + j];
    }
    const double norm = std::sqrt(squares - sum * sum / static_cast<double>(d));
    const double theta = -(up_bias[i] + 0.1 * sum) / norm;
    const double output = norm * (normal_density(theta) - theta * normal_tail(theta));
    for (size_t j = 0; j < d; ++j) expected[j] -= output * down[j * d_ff + i];
  }
  for (size_t j = 0; j < d; ++j) EXPECT_NEAR(down_bias[j], expected[j], 1e-5);
}

TEST(PlantedSource, RefusesOtherShapes) {
  const auto refused = [](auto spoil, Encoding encoding = Encoding::f16) {
    ModelConfig shape = odd_planted_shape();
    spoil(shape);
    const auto source = PlantedSource::make(shape, flash_profile(), encoding, 1);
    return source.ok() ? "accepted" : source.error().line();
  };
  EXPECT_EQ(refused([](auto&) {}), "accepted");
  EXPECT_THAT(refused([](auto& c) { c.norm = Norm::rms; }), HasSubstr("a layer norm with bias"));
  EXPECT_THAT(refused([](auto& c) { c.parallel = true; }), HasSubstr("a layer norm with bias"));
  EXPECT_THAT(refused([](auto& c) { c.gated = true; }), HasSubstr("an FFN of two matrices"));
  EXPECT_THAT(refused([](auto& c) { c.activation = Activation::silu; }), HasSubstr("and ReLU"));
  EXPECT_THAT(refused([](auto& c) { c.position = PositionKind::rope_half; }), HasSubstr("learned positions"));
  EXPECT_THAT(refused([](auto& c) { c.vocab_size = 259; }), HasSubstr("a vocabulary of 259 is too small"));
  EXPECT_THAT(refused([](auto& c) { c.n_layers = 2; }), HasSubstr("at least 3 layers"));
  EXPECT_THAT(refused([](auto&) {}, Encoding::q4_0), HasSubstr("f16 or f32, found q4_0"));
}

}  // namespace
}  // namespace tierd
