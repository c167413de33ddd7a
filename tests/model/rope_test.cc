#include "core/model/rope.h"

#include <cmath>
#include <functional>
#include <numbers>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tierd {
namespace {

constexpr uint32_t kContext = 64;

std::vector<float> of_eight(const Rope& rope) {
  return rope_frequencies(rope, 8, kContext);
}

void expect_near(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2e-6 * expected[i]) << i;
}

TEST(RopeFrequencies, FallGeometrically) {
  expect_near(of_eight({}), {1, 0.1F, 0.01F, 0.001F});
}

TEST(RopeFrequencies, LinearScalingDividesAll) {
  expect_near(of_eight({.scaling = RopeScaling::linear, .factor = 4}), {0.25F, 0.025F, 0.0025F, 0.00025F});
}

TEST(RopeFrequencies, Llama3KeepsShortStretchesLongAndBlendsBetween) {
  // Wavelengths 6.3, 62.8, 628, 6283; kept below 25, stretched above 100.
  const auto f = of_eight({.scaling = RopeScaling::llama3, .factor = 8, .original_context = 100});
  const double smooth = (100 / (20 * std::numbers::pi) - 1) / 3;
  expect_near(f, {1, static_cast<float>((1 - smooth) * 0.1 / 8 + smooth * 0.1), 0.01F / 8, 0.001F / 8});
}

TEST(RopeFrequencies, DivisorsOfTheFileApply) {
  expect_near(of_eight({.divisors = {1, 2, 4, 8}}), {1, 0.05F, 0.0025F, 0.000125F});
}

// Values of transformers 5.23, modeling_rope_utils.py, of 16 rotated values, theta 10000.
TEST(RopeFrequencies, AreThoseOfTransformers) {
  Rope yarn = {
      .scaling = RopeScaling::yarn, .factor = 8, .original_context = 64, .beta_fast = 4, .beta_slow = 1};
  expect_near(rope_frequencies(yarn, 16, kContext),
              {1, 0.2239947F, 0.04166666F, 0.003952847F, 0.00125F, 0.0003952847F, 0.000125F, 3.952847e-05F});
  yarn.bounds_are_whole = false;
  expect_near(rope_frequencies(yarn, 16, kContext),
              {1, 0.272999F, 0.0136627F, 0.003952847F, 0.00125F, 0.0003952847F, 0.000125F, 3.952847e-05F});
  const Rope longrope = {.scaling = RopeScaling::longrope,
                         .factor = 4,
                         .original_context = 64,
                         .divisors = {1, 1.5F, 2, 2, 2, 3, 3, 4},
                         .long_divisors = std::vector<float>(8, 2)};
  expect_near(rope_frequencies(longrope, 16, 64),
              {1, 0.2108185F, 0.05F, 0.01581139F, 0.005F, 0.001054093F, 0.0003333333F, 7.905695e-05F});
  expect_near(rope_frequencies(longrope, 16, 65),
              {0.5F, 0.1581139F, 0.05F, 0.01581139F, 0.005F, 0.001581139F, 0.0005F, 0.0001581139F});
  const Rope dynamic = {.scaling = RopeScaling::dynamic, .factor = 4, .original_context = 256};
  expect_near(rope_frequencies(dynamic, 16, 256),
              {1, 0.3162278F, 0.1F, 0.03162278F, 0.01F, 0.003162278F, 0.001F, 0.0003162278F});
  expect_near(rope_frequencies(dynamic, 16, 512), {1, 0.2512738F, 0.06313851F, 0.01586505F, 0.00398647F,
                                                   0.001001695F, 0.0002516998F, 6.324555e-05F});
}

TEST(RopeMagnitude, IsThatOfTransformers) {
  EXPECT_FLOAT_EQ(yarn_magnitude(8), 1.2079441F);
  EXPECT_FLOAT_EQ(yarn_magnitude(8, 1) / yarn_magnitude(8, 0.5F), 1.09418F);
  EXPECT_FLOAT_EQ(yarn_magnitude(1), 1);
  EXPECT_FLOAT_EQ(longrope_magnitude(4, 64), 1.1547005F);
  EXPECT_FLOAT_EQ(longrope_magnitude(1, 64), 1);
}

struct BadRope {
  std::string expected;  // part of the message
  Rope rope;
};

TEST(Rope, RefusesWhatCannotBe) {
  const std::vector<float> two = {1, 1}, four = {1, 1, 1, 1};
  const std::vector<BadRope> cases = {
      {"rope theta is 0", {.theta = 0}},
      {"rope scaling factor is -1", {.scaling = RopeScaling::linear, .factor = -1}},
      {"rope magnitude is nan", {.magnitude = NAN}},
      {"rope original context is 0", {.scaling = RopeScaling::yarn, .original_context = 0}},
      {"rope beta_fast 1 is not above beta_slow 1", {.scaling = RopeScaling::yarn, .beta_fast = 1}},
      {"rope beta_slow is 0", {.scaling = RopeScaling::yarn, .beta_slow = 0}},
      {"rope theta is 1, expected more than 1", {.theta = 1, .scaling = RopeScaling::yarn}},
      {"0 rope frequency divisors, expected half as many as the 8", {.scaling = RopeScaling::longrope}},
      {"2 rope frequency divisors",
       {.scaling = RopeScaling::longrope, .divisors = four, .long_divisors = two}},
      {"divisors of a long context are set", {.long_divisors = four}},
  };
  for (const BadRope& bad : cases) {
    const Status status = validate(bad.rope, 8, "config.json");
    ASSERT_FALSE(status.ok()) << bad.expected;
    EXPECT_THAT(status.error().line(), testing::HasSubstr(bad.expected));
  }
  EXPECT_FALSE(validate({.scaling = RopeScaling::dynamic}, 2, "config.json").ok());
}

}  // namespace
}  // namespace tierd
