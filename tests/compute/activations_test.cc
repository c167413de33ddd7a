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

struct Function {
  Activation activation;
  float threshold;
};
constexpr Function kFunctions[] = {{Activation::silu, 0},      {Activation::relu, 0},
                                   {Activation::relu, 0.5f},   {Activation::relu_squared, 0},
                                   {Activation::gelu, 0},      {Activation::gelu_tanh, 0},
                                   {Activation::swiglu_oai, 7}};

class ActivationKernels : public KernelSet {};
TIERD_ALL_KERNEL_SETS(ActivationKernels);

TEST_P(ActivationKernels, RmsNorm) {
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

TEST_P(ActivationKernels, LayerNorm) {
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

TEST_P(ActivationKernels, NormsWorkInPlace) {
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

// Every function, with and without a factor, on every length, and where exponentials overflow.
TEST_P(ActivationKernels, ActivateFollowsItsTwin) {
  Random random(4);
  for (const auto& [function, threshold] : kFunctions) {
    SCOPED_TRACE(static_cast<int>(function));
    const auto compare = [&, f = function, t = threshold](const std::vector<float>& x,
                                                          const std::vector<float>& factor) {
      const auto n = static_cast<uint32_t>(x.size());
      for (const float* times : {static_cast<const float*>(nullptr), factor.data()}) {
        if (times == nullptr && f == Activation::swiglu_oai) continue;  // it has a gate
        std::vector<float> want(n), got(n);
        scalar().activate(f, t, x.data(), times, n, want.data());
        kernels().activate(f, t, x.data(), times, n, got.data());
        // Far below zero GELU's halves cancel: the result is exact only relative to x.
        for (uint32_t i = 0; i < n; ++i) {
          const float scale = std::max(std::fabs(want[i]), x[i] < 0 ? 0.05f * std::fabs(x[i]) : 0.0f);
          ASSERT_NEAR(want[i], got[i], 1e-5f * scale + 1e-30f) << x[i];
        }
      }
    };
    for (const uint32_t n : kSizes) compare(random_values(n, random, 20), random_values(n, random));
    compare({0, -0.0f, 88, -88, 200, -200, 1e6f, -1e6f}, std::vector<float>(8, 2.0f));
  }
}

TEST_P(ActivationKernels, SiluKeepsInfinitiesAndNaNs) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> gate = {infinity, std::nanf(""), 1e30f, -1e30f};
  std::vector<float> got(gate.size());
  kernels().activate(Activation::silu, 0, gate.data(), nullptr, 4, got.data());
  EXPECT_EQ(got[0], infinity);
  EXPECT_TRUE(std::isnan(got[1]));
  EXPECT_EQ(got[2], 1e30f);
  EXPECT_NEAR(got[3], 0, 1e-30f);
}

TEST_P(ActivationKernels, AddReluAndHalvesAreExact) {
  Random random(5);
  for (const uint32_t n : kSizes) {
    auto x = random_values(n, random, 100);
    x[0] = -0.0f;
    const auto y = random_values(n, random, 1e-3f);
    std::vector<float> want(n), got(n);
    for (const float threshold : {0.0f, 5.0f}) {
      scalar().activate(Activation::relu, threshold, x.data(), nullptr, n, want.data());
      kernels().activate(Activation::relu, threshold, x.data(), nullptr, n, got.data());
      EXPECT_EQ(want, got);
    }
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

TEST_P(ActivationKernels, HalvesOfEveryMagnitude) {
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

// Every instruction set sums in the order of 16 lanes.
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
    for (const auto& [function, threshold] : kFunctions) {
      a.activate(function, threshold, x.data(), w.data(), n, from_a.data());
      b.activate(function, threshold, x.data(), w.data(), n, from_b.data());
      EXPECT_EQ(from_a, from_b);
    }
  }
}

}  // namespace
}  // namespace tierd
