// Compares magnitude and Wanda pruning with twins that sort, and tests the resulting shares and N:M patterns.
#include "tools/lab/prune/masks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/lab/prune/random_matrix.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The published method: sorts a row by score, stably, and zeroes its beginning.
void zero_first_sorted(std::span<float> weight, const std::vector<float>& scores, uint64_t count) {
  std::vector<size_t> order(weight.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  for (uint64_t i = 0; i < count; ++i) weight[order[i]] = 0;
}

// Prunes row by row and group by group. Without groups a row is one group.
void naive_wanda(std::vector<float>& weight, const std::vector<float>& norms, const Pattern& pattern) {
  const size_t cols = norms.size(), group = pattern.in_groups() ? pattern.group : cols;
  for (size_t row = 0; row < weight.size(); row += cols) {
    for (size_t at = 0; at < cols; at += group) {
      std::vector<float> scores;
      for (size_t j = at; j < at + group; ++j) scores.push_back(std::fabs(weight[row + j]) * norms[j]);
      const uint64_t count = pattern.in_groups() ? pattern.group - pattern.kept : pattern.pruned_of(cols);
      zero_first_sorted(std::span(weight).subspan(row + at, group), scores, count);
    }
  }
}

uint64_t zeros(std::span<const float> values) {
  return static_cast<uint64_t>(std::ranges::count(values, 0.0f));
}

struct Shape {
  uint32_t rows, cols;
};
const std::vector<Shape> kShapes = {{1, 1}, {1, 4}, {3, 8}, {5, 64}, {17, 100}, {2, 516}};

TEST(Masks, WandaZeroesWhatItsTwinDoesAndTheSameShareOfEveryRow) {
  Random random(1);
  for (const auto& [rows, cols] : kShapes) {
    for (const double sparsity : {0.01, 0.3, 0.5, 0.99}) {
      const std::vector<float> norms = random_values(random, cols);
      std::vector<float> weight = random_values(random, size_t{rows} * cols);
      std::vector<float> magnitudes = norms;
      for (float& norm : magnitudes) norm = std::fabs(norm);
      std::vector<float> expected = weight;
      naive_wanda(expected, magnitudes, {sparsity});
      prune_by_wanda(weight, magnitudes, {sparsity});
      EXPECT_EQ(weight, expected) << rows << " x " << cols << ", " << sparsity;
      for (size_t row = 0; row < weight.size(); row += cols)
        EXPECT_EQ(zeros(std::span(weight).subspan(row, cols)), static_cast<uint64_t>(cols * sparsity));
    }
  }
}

TEST(Masks, MagnitudeZeroesItsShareOfTheMatrixAndNoneThatIsLarger) {
  Random random(2);
  for (const auto& [rows, cols] : kShapes) {
    for (const double sparsity : {0.01, 0.5, 0.7}) {
      const std::vector<float> before = random_values(random, size_t{rows} * cols);
      std::vector<float> weight = before, expected = before, scores = before;
      for (float& score : scores) score = std::fabs(score);
      const auto count = static_cast<uint64_t>(static_cast<double>(before.size()) * sparsity);
      zero_first_sorted(expected, scores, count);
      prune_by_magnitude(weight, {sparsity});
      EXPECT_EQ(weight, expected);
      EXPECT_EQ(zeros(weight), count);
    }
  }
}

TEST(Masks, InGroupsOfMEachKeepsN) {
  Random random(3);
  for (const char* text : {"2:4", "1:4", "3:4", "4:8", "1:2"}) {
    const auto pattern = parse_groups(text);
    ASSERT_TRUE(pattern.ok());
    std::vector<float> norms = random_values(random, 24);
    for (float& norm : norms) norm = std::fabs(norm);
    std::vector<float> weight = random_values(random, 7 * 24), expected = weight, magnitude = weight;
    naive_wanda(expected, norms, *pattern);
    prune_by_wanda(weight, norms, *pattern);
    EXPECT_EQ(weight, expected) << text;
    expected = magnitude;
    naive_wanda(expected, std::vector<float>(24, 1.0f), *pattern);
    prune_by_magnitude(magnitude, *pattern);
    EXPECT_EQ(magnitude, expected) << text;
    for (const auto& pruned : {weight, magnitude}) {
      for (size_t at = 0; at < pruned.size(); at += pattern->group)
        EXPECT_EQ(zeros(std::span(pruned).subspan(at, pattern->group)), pattern->group - pattern->kept);
    }
  }
}

TEST(Masks, OfEqualOnesTheFirstAreTaken) {
  std::vector<uint8_t> pruned(6);
  mark_smallest(std::vector<float>{2, 1, 1, 0, 1, 2}, 3, pruned);
  EXPECT_THAT(pruned, ElementsAre(0, 1, 1, 1, 0, 0));
  mark_smallest(std::vector<float>{0, 0, 0, 0, 0, 0}, 2, pruned);
  EXPECT_THAT(pruned, ElementsAre(1, 1, 0, 0, 0, 0));
  mark_smallest(std::vector<float>{0, 0, 0, 0, 0, 0}, 0, pruned);
  EXPECT_THAT(pruned, ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(Masks, WandaIsTheSameAfterSmoothing) {
  Random random(4);
  constexpr uint32_t kCols = 64;
  std::vector<float> norms = random_values(random, kCols);
  for (float& norm : norms) norm = std::fabs(norm) + 0.01f;
  std::vector<float> weight = random_values(random, 9 * kCols), smoothed = weight, divided = norms;
  for (uint32_t j = 0; j < kCols; ++j) {
    const float scale = static_cast<float>(1 << (j % 5));  // exact, so that no rounding decides
    divided[j] /= scale;
    for (size_t row = 0; row < weight.size(); row += kCols) smoothed[row + j] *= scale;
  }
  prune_by_wanda(weight, norms, {0.5});
  prune_by_wanda(smoothed, divided, {0.5});
  for (size_t i = 0; i < weight.size(); ++i) EXPECT_EQ(weight[i] == 0, smoothed[i] == 0) << i;
}

TEST(Pattern, WrongOnesAreALine) {
  for (const char* text : {"", "2", ":", "2:", ":4", "0:4", "4:4", "5:4", "2:4x", "-1:4", "2:129", "2:4:8"}) {
    const auto pattern = parse_groups(text);
    ASSERT_FALSE(pattern.ok()) << text;
    EXPECT_THAT(pattern.error().line(), HasSubstr("--nm")) << text;
  }
  for (const double share : {0.0, 1.0, -0.5, 1.5, std::nan("")}) {
    const auto pattern = pattern_of_share(share);
    ASSERT_FALSE(pattern.ok()) << share;
    EXPECT_THAT(pattern.error().line(), HasSubstr("--share")) << share;
  }
  const auto pattern = parse_groups("2:8");
  ASSERT_TRUE(pattern.ok());
  EXPECT_EQ(pattern->sparsity, 0.75);
}

}  // namespace
}  // namespace tierd
