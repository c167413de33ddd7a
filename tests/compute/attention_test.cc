#include <gtest/gtest.h>

#include <cmath>

#include "core/base/random.h"
#include "core/model/layout/codec.h"
#include "tests/compute/kernel_sets_under_test.h"

namespace tierd {
namespace {

// A KV cache of `heads` heads a position, in f32 values that f16 holds exactly, and in f16.
struct Cache {
  Cache(uint32_t positions, uint32_t head_dim, uint32_t heads, Random& random, float magnitude)
      : stride(size_t{head_dim} * heads) {
    for (auto* side : {&k, &v}) {
      side->resize(positions * stride);
      for (auto& x : *side) x = f16_to_f32(f32_to_f16(magnitude * random.symmetric()));
    }
    for (const float x : k) k16.push_back(f32_to_f16(x));
    for (const float x : v) v16.push_back(f32_to_f16(x));
  }
  size_t stride;
  std::vector<float> k, v;
  std::vector<uint16_t> k16, v16;
};

std::vector<double> reference(const Cache& c, const std::vector<float>& q, uint32_t first, uint32_t last,
                              const ScoreShape& score) {
  std::vector<double> weights, out(q.size());
  double largest = score.sink, total = 0;
  for (uint32_t p = first; p < last; ++p) {
    double dot = 0;
    for (size_t i = 0; i < q.size(); ++i) dot += double{q[i]} * c.k[p * c.stride + i];
    const double scaled = dot * score.scale;
    weights.push_back(score.cap == 0 ? scaled : score.cap * std::tanh(scaled / score.cap));
    largest = std::max(largest, weights.back());
  }
  for (auto& w : weights) total += w = std::exp(w - largest);
  total += std::exp(score.sink - largest);
  for (uint32_t p = first; p < last; ++p) {
    for (size_t i = 0; i < q.size(); ++i) out[i] += weights[p - first] / total * c.v[p * c.stride + i];
  }
  return out;
}

std::vector<float> attend(const ComputeKernels& kernels, const Cache& c, const std::vector<float>& q,
                          uint32_t first, uint32_t last, const ScoreShape& score, bool half) {
  std::vector<float> scratch(last - first), out(q.size(), 7.0f);
  const auto dim = static_cast<uint32_t>(q.size());
  if (half) {
    kernels.attend_f16(q.data(), c.k16.data(), c.v16.data(), c.stride, first, last, dim, score,
                       scratch.data(), out.data());
  } else {
    kernels.attend_f32(q.data(), c.k.data(), c.v.data(), c.stride, first, last, dim, score, scratch.data(),
                       out.data());
  }
  return out;
}

class Attention : public testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(All, Attention, testing::ValuesIn(kernel_names().begin(), kernel_names().end()),
                         [](const auto& test) { return test_name(test.param); });

TEST_P(Attention, IsTheReferenceInDoubles) {
  const ComputeKernels& kernels = *kernels_by_name(GetParam());
  Random random(1);
  for (const uint32_t dim : {8u, 16u, 20u, 64u, 80u, 128u}) {
    const Cache cache(3000, dim, 2, random, 1);
    std::vector<float> q(dim);
    for (auto& v : q) v = 2 * random.symmetric();
    const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
    const std::pair<uint32_t, uint32_t> ranges[] = {{0, 1},  {5, 6},    {0, 16},     {0, 17},
                                                    {3, 40}, {0, 3000}, {2000, 3000}};
    for (const auto& [first, last] : ranges) {
      const float cap = last % 2 == 0 ? 0.8f : 0;
      ScoreShape score = {scale, cap};
      if (last % 3 == 0) score.sink = last % 2 == 0 ? 4 : -2;
      const auto want = reference(cache, q, first, last, score);
      for (const bool half : {false, true}) {
        const auto got = attend(kernels, cache, q, first, last, score, half);
        for (uint32_t i = 0; i < dim; ++i) {
          ASSERT_NEAR(got[i], want[i], 1e-5) << dim << " " << first << " " << last << " " << half;
        }
      }
    }
  }
}

TEST_P(Attention, OnePositionIsItsValue) {
  Random random(2);
  const Cache cache(4, 64, 1, random, 1);
  const std::vector<float> q(64, 1000.0f);
  const auto out = attend(*kernels_by_name(GetParam()), cache, q, 2, 3, {1}, true);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], cache.v[2 * 64 + i]);
}

TEST_P(Attention, HugeScoresStayFinite) {
  Random random(3);
  const Cache cache(100, 32, 1, random, 100);
  std::vector<float> q(32);
  for (auto& v : q) v = 1e6f * random.symmetric();
  for (const float v : attend(*kernels_by_name(GetParam()), cache, q, 0, 100, {1}, false))
    EXPECT_TRUE(std::isfinite(v));
}

TEST_P(Attention, NoPositionGivesZeros) {
  Random random(4);
  const Cache cache(1, 24, 1, random, 1);
  const auto out = attend(*kernels_by_name(GetParam()), cache, std::vector<float>(24, 1.0f), 1, 1, {1}, true);
  EXPECT_EQ(out, std::vector<float>(24, 0.0f));
}

TEST(AttentionSets, AgreeBitForBit) {
  const auto sets = simd_sets();
  if (sets.size() < 2) GTEST_SKIP() << "this processor has fewer than two SIMD sets";
  Random random(5);
  for (const uint32_t dim : {8u, 64u, 100u, 128u}) {
    const Cache cache(333, dim, 1, random, 1);
    std::vector<float> q(dim);
    for (auto& v : q) v = random.symmetric();
    for (const bool half : {false, true}) {
      EXPECT_EQ(attend(*kernels_by_name(sets[0]), cache, q, 0, 333, {0.3f}, half),
                attend(*kernels_by_name(sets[1]), cache, q, 0, 333, {0.3f}, half));
    }
  }
}

}  // namespace
}  // namespace tierd
