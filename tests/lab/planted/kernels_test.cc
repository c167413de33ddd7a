#include "tools/lab/planted/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/random.h"

namespace tierd {
namespace {

std::vector<float> random_values(uint64_t seed, size_t count) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.symmetric();
  return values;
}

TEST(PlantedKernels, ProductsAreThoseOfTheScalarTwin) {
  for (const uint32_t depth : {1u, 15u, 127u}) {
    for (const uint32_t cols : {1u, 32u, 75u}) {
      PackedMatrix right(depth, cols);
      const std::vector<float> plain = random_values(depth + cols, uint64_t{depth} * cols);
      for (uint32_t k = 0; k < depth; ++k)
        right.set_row(k, std::span(plain).subspan(uint64_t{k} * cols, cols));
      for (const uint32_t rows : {1u, 7u, 8u, 21u}) {
        const std::vector<float> left = random_values(rows, uint64_t{rows} * depth);
        std::vector<float> twin(uint64_t{rows} * cols);
        std::vector<float> fast(twin.size());
        scalar_planted_kernels().multiply(left.data(), rows, right, twin.data());
        planted_kernels().multiply(left.data(), rows, right, fast.data());
        ASSERT_EQ(fast, twin) << rows << " x " << depth << " x " << cols;
        float first = 0;
        for (uint32_t k = 0; k < depth; ++k) first = std::fma(left[k], plain[uint64_t{k} * cols], first);
        ASSERT_EQ(twin[0], first);
      }
    }
  }
}

TEST(PlantedKernels, UniformNumbersAreThoseOfTheScalarTwin) {
  const RandomKey key = random_key(7, 1, Drawn::down, 3);
  for (const uint32_t first : {0u, 1u, 2u, 63u, 1000u}) {
    for (const size_t count : {0u, 1u, 31u, 32u, 200u}) {
      std::vector<float> twin = random_values(first + count, count);
      std::vector<float> fast = twin;
      scalar_planted_kernels().add_uniform(key, first, 0.01f, twin);
      planted_kernels().add_uniform(key, first, 0.01f, fast);
      ASSERT_EQ(fast, twin) << count << " from " << first;
    }
  }
}

TEST(PlantedKernels, HalvesAreThoseOfTheScalarTwin) {
  std::vector<float> values = random_values(5, 1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::ldexp(values[i], static_cast<int>(i % 40) - 30);
  values[3] = std::numeric_limits<float>::infinity();
  values[4] = 65519.0f;
  values[5] = 0x1p-25f;
  std::vector<uint16_t> twin(values.size());
  std::vector<uint16_t> fast(values.size());
  scalar_planted_kernels().to_f16(values, twin.data());
  planted_kernels().to_f16(values, fast.data());
  EXPECT_EQ(fast, twin);
}

// Checks mean and variance, and that neighbours, rows and layers are uncorrelated.
TEST(PlantedKernels, UniformAndNormalNumbersAreWhatTheySay) {
  constexpr size_t kCount = 1 << 16;
  const auto uniform = [](uint32_t layer, uint64_t row) {
    std::vector<float> values(kCount);
    planted_kernels().add_uniform(random_key(1, layer, Drawn::down, row), 0, std::sqrt(12.0f) / 65536,
                                  values);
    return values;
  };
  const auto normal = [](uint32_t layer, uint64_t row) {
    std::vector<float> values(kCount);
    fill_normal(random_key(1, layer, Drawn::word, row), values);
    return values;
  };
  const auto mean_product = [](const std::vector<float>& a, const std::vector<float>& b, size_t apart) {
    double sum = 0;
    for (size_t i = 0; i + apart < a.size(); ++i) sum += double{a[i + apart]} * b[i];
    return sum / kCount;
  };
  for (const auto& draw : {std::function(uniform), std::function(normal)}) {
    const std::vector<float> values = draw(0, 0);
    EXPECT_NEAR(mean_product(values, std::vector<float>(kCount, 1.0f), 0), 0, 0.02);
    EXPECT_NEAR(mean_product(values, values, 0), 1, 0.03);
    for (const size_t apart : {1u, 2u, 32u}) EXPECT_NEAR(mean_product(values, values, apart), 0, 0.02);
    EXPECT_NEAR(mean_product(values, draw(0, 1), 0), 0, 0.02);
    EXPECT_NEAR(mean_product(values, draw(1, 0), 0), 0, 0.02);
  }
}

}  // namespace
}  // namespace tierd
