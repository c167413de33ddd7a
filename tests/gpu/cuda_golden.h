// Compares whole runs with the backend `cuda` with the same runs on the CPU. In tests the host emulates the
// device; tests/bench/gpu builds the same programs for a GPU (TIERD_ON_GPU).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/e2e/golden_model.h"

namespace tierd {

inline constexpr uint32_t kChunk = 8;
inline constexpr double kMostDivergence = 1e-5;

// Expects a mean KL(expected || got) over rows, in nats, of at most kMostDivergence. The likeliest token must
// be the same in each row whose two greatest logits differ by more than the worst error of any logit.
inline void expect_the_same_answers(std::span<const float> got, std::span<const float> expected,
                                    size_t vocab) {
  ASSERT_EQ(got.size(), expected.size());
  float worst = 0;
  for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - expected[i]));
  double divergence = 0;
  for (size_t row = 0; row < got.size(); row += vocab) {
    const auto p = expected.subspan(row, vocab), q = got.subspan(row, vocab);
    const auto normalizer = [](std::span<const float> logits) {
      const double top = *std::ranges::max_element(logits);
      double sum = 0;
      for (const float x : logits) sum += std::exp(x - top);
      return top + std::log(sum);
    };
    const double np = normalizer(p), nq = normalizer(q);
    for (size_t i = 0; i < vocab; ++i) divergence += std::exp(p[i] - np) * ((p[i] - np) - (q[i] - nq));
    std::vector<float> sorted(p.begin(), p.end());
    std::ranges::partial_sort(sorted, sorted.begin() + 2, std::greater<>());
    if (sorted[0] - sorted[1] <= worst) continue;
    EXPECT_EQ(std::ranges::max_element(p) - p.begin(), std::ranges::max_element(q) - q.begin());
  }
  divergence /= static_cast<double>(got.size() / vocab);
  EXPECT_LE(divergence, kMostDivergence);
  std::printf("  most |difference| %.2g, KL %.2g\n", static_cast<double>(worst), divergence);
}

// The way in which slots move from DRAM: read from registered memory, or gathered. A GPU uses registered
// memory; the double can also be made to gather.
enum class Moves : uint8_t { registered, gathered };

// Configures the tier with the agent that the program is built for.
inline void put_above(TierConfig& gpu, [[maybe_unused]] int64_t late, [[maybe_unused]] Moves moves) {
#if defined(TIERD_ON_GPU)
  gpu.kind = "gpu";
  gpu.settings = {{"backend", std::string("cuda"), "test"}};
#else
  gpu.kind = "double";
  gpu.settings = {{"late", late, "test"}};
  if (moves == Moves::gathered) gpu.settings.push_back({"lockable", std::string("0"), "test"});
#endif
}

class CudaGolden : public testing::Test {
 protected:
  static void SetUpTestSuite() { cache_ = use_test_cache(); }
  static void TearDownTestSuite() { std::filesystem::remove_all(cache_); }

  // Computes everything on the GPU tier, with this capacity.
  static Config above(const Config& base, const std::string& capacity, int64_t late,
                      Moves moves = Moves::registered) {
    Config config = base;
    config.plugin_path = TIERD_DOUBLE_DIR;
    TierConfig& gpu = config.tier("gpu");
    put_above(gpu, late, moves);
    gpu.over = "dram";
    gpu.capacity = capacity;
    config.dense = "gpu";
    config.tier("dram").compute = false;
    return config;
  }
  static std::vector<float> logits_of(const Config& config, const Golden& golden, uint32_t chunk) {
    const auto logits = run_all_logits(config, golden.tokens, chunk);
    EXPECT_TRUE(logits.ok()) << logits.error().line();
    return logits.ok() ? *logits : std::vector<float>();
  }
  static void check(const Config& base, const Golden& golden, bool token_by_token) {
    const std::vector<float> expected = logits_of(base, golden, kChunk);
    const std::vector<float> resident = logits_of(above(base, "100%", 0), golden, kChunk);
    if (HasFailure()) return;
    expect_the_same_answers(resident, expected, golden.logits.size() / golden.tokens.size());
    // Streaming, other chunks and delays give the same bits, whichever way neurons move.
    for (const Moves moves : {Moves::registered, Moves::gathered}) {
      Config streamed = above(base, "30%", 7, moves);
      streamed.cache = {"lru"};
      expect_the_same_bits(logits_of(streamed, golden, kChunk), resident);
    }
    if (token_by_token) expect_the_same_bits(logits_of(above(base, "60%", 3), golden, 1), resident);
  }

 private:
  static inline std::string cache_;
};

}  // namespace tierd
