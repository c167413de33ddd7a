#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/random.h"
#include "tests/compute/kernel_sets_under_test.h"

namespace tierd {
namespace {

constexpr uint32_t kSizes[] = {1, 7, 15, 16, 17, 33, 172, 4096};

std::vector<float> random_values(size_t n, Random& random, float magnitude = 1, float mean = 0) {
  std::vector<float> x(n);
  for (auto& v : x) v = mean + magnitude * random.symmetric();
  return x;
}

void expect_near(const std::vector<float>& want, const std::vector<float>& got, float relative) {
  float largest = 0;
  for (const float v : want) largest = std::max(largest, std::fabs(v));
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(want[i], got[i], relative * largest) << i;
}

class Activation : public KernelSet {};
TIERD_ALL_KERNEL_SETS(Activation);

TEST_P(Activation, RmsNorm) {
  Random random(1);
  for (const uint32_t n : kSizes) {
    for (const float magnitude : {1.0f, 1e4f, 1e-4f, 0.0f}) {
      const auto x = random_values(n, random, magnitude), weight = random_values(n, random);
      std::vector<float> want(n), got(n);
      scalar().rms_norm(x.data(), weight.data(), 1e-5f, n, want.data());
      kernels().rms_norm(x.data(), weight.data(), 1e-5f, n, got.data());
      expect_near(want, got, 1e-5f);
    }
  }
}

TEST_P(Activation, LayerNorm) {
  Random random(2);
  for (const uint32_t n : kSizes) {
    for (const float mean : {0.0f, 3.0f}) {
      const auto x = random_values(n, random, 2, mean), weight = random_values(n, random),
                 bias = random_values(n, random);
      std::vector<float> want(n), got(n);
      scalar().layer_norm(x.data(), weight.data(), bias.data(), 1e-5f, n, want.data());
      kernels().layer_norm(x.data(), weight.data(), bias.data(), 1e-5f, n, got.data());
      expect_near(want, got, 1e-5f);
    }
  }
}

TEST_P(Activation, NormsWorkInPlace) {
  Random random(3);
  const auto x = random_values(100, random), weight = random_values(100, random),
             bias = random_values(100, random);
  std::vector<float> apart(100);
  auto in_place = x;
  kernels().rms_norm(x.data(), weight.data(), 1e-5f, 100, apart.data());
  kernels().rms_norm(in_place.data(), weight.data(), 1e-5f, 100, in_place.data());
  EXPECT_EQ(apart, in_place);
  in_place = x;
  kernels().layer_norm(x.data(), weight.data(), bias.data(), 1e-5f, 100, apart.data());
  kernels().layer_norm(in_place.data(), weight.data(), bias.data(), 1e-5f, 100, in_place.data());
  EXPECT_EQ(apart, in_place);
}

TEST_P(Activation, SiluMul) {
  Random random(4);
  for (const uint32_t n : kSizes) {
    const auto gate = random_values(n, random, 20), up = random_values(n, random);
    std::vector<float> want(n), got(n);
    scalar().silu_mul(gate.data(), up.data(), n, want.data());
    kernels().silu_mul(gate.data(), up.data(), n, got.data());
    for (uint32_t i = 0; i < n; ++i) ASSERT_NEAR(want[i], got[i], 1e-5f * std::fabs(want[i]) + 1e-30f);
  }
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> gate = {0, -0.0f, 88, -88, 200, -200, 1e30f, -1e30f, infinity, std::nanf("")};
  const std::vector<float> up(gate.size(), 2.0f);
  std::vector<float> want(gate.size()), got(gate.size());
  scalar().silu_mul(gate.data(), up.data(), static_cast<uint32_t>(gate.size()), want.data());
  kernels().silu_mul(gate.data(), up.data(), static_cast<uint32_t>(gate.size()), got.data());
  for (size_t i = 0; i + 2 < gate.size(); ++i)
    EXPECT_NEAR(want[i], got[i], 1e-5f * std::fabs(want[i]) + 1e-30f);
  EXPECT_EQ(got[8], infinity);
  EXPECT_TRUE(std::isnan(got[9]));
}

TEST_P(Activation, AddReluAndHalvesAreExact) {
  Random random(5);
  for (const uint32_t n : kSizes) {
    auto x = random_values(n, random, 100);
    x[0] = -0.0f;
    const auto y = random_values(n, random, 1e-3f);
    std::vector<float> want(n), got(n);
    scalar().relu(x.data(), n, want.data());
    kernels().relu(x.data(), n, got.data());
    EXPECT_EQ(want, got);
    EXPECT_FALSE(std::signbit(got[0]));
    std::vector<uint16_t> want_halves(n), got_halves(n);
    scalar().f32_to_f16(x.data(), n, want_halves.data());
    kernels().f32_to_f16(x.data(), n, got_halves.data());
    EXPECT_EQ(want_halves, got_halves);
    want = got = x;
    scalar().add(want.data(), y.data(), n);
    kernels().add(got.data(), y.data(), n);
    EXPECT_EQ(want, got);
  }
}

TEST_P(Activation, HalvesOfEveryMagnitude) {
  std::vector<float> x;
  Random random(6);
  for (int exponent = -30; exponent < 20; ++exponent) {
    for (int i = 0; i < 40; ++i) x.push_back(std::ldexp(random.symmetric(), exponent));
  }
  x.insert(x.end(),
           {65504, 65519.9f, 65520, -65520, 1e30f, std::ldexp(1.0f, -25), std::ldexp(1.5f, -25), 0, -0.0f});
  const auto n = static_cast<uint32_t>(x.size());
  std::vector<uint16_t> want(n), got(n);
  scalar().f32_to_f16(x.data(), n, want.data());
  kernels().f32_to_f16(x.data(), n, got.data());
  EXPECT_EQ(want, got);
}

// The order of the sums is of 16 lanes on every instruction set.
TEST(ActivationSets, AgreeBitForBit) {
  const auto sets = simd_sets();
  if (sets.size() < 2) GTEST_SKIP() << "this processor has fewer than two SIMD sets";
  const auto &a = *kernels_by_name(sets[0]), &b = *kernels_by_name(sets[1]);
  Random random(7);
  for (const uint32_t n : kSizes) {
    const auto x = random_values(n, random, 3), w = random_values(n, random), bias = random_values(n, random);
    std::vector<float> from_a(n), from_b(n);
    a.rms_norm(x.data(), w.data(), 1e-5f, n, from_a.data());
    b.rms_norm(x.data(), w.data(), 1e-5f, n, from_b.data());
    EXPECT_EQ(from_a, from_b);
    a.layer_norm(x.data(), w.data(), bias.data(), 1e-5f, n, from_a.data());
    b.layer_norm(x.data(), w.data(), bias.data(), 1e-5f, n, from_b.data());
    EXPECT_EQ(from_a, from_b);
    a.silu_mul(x.data(), w.data(), n, from_a.data());
    b.silu_mul(x.data(), w.data(), n, from_b.data());
    EXPECT_EQ(from_a, from_b);
  }
}

}  // namespace
}  // namespace tierd
