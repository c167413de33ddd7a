// Compares SparseGPT with a twin that follows the optimal brain surgeon one column at a time, in doubles,
// without blocks or a Cholesky factor; and with the methods that only choose weights.
#include "tools/lab/prune/sparsegpt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/lab/prune/random_matrix.h"
#include "tools/lab/prune/input_statistics.h"
#include "tools/lab/prune/masks.h"

namespace tierd {
namespace {

using Doubles = std::vector<double>;

// Inverts by Gauss-Jordan elimination. The matrices here are positive definite.
Doubles inverse_of(Doubles a, size_t n) {
  Doubles b(n * n);
  for (size_t i = 0; i < n; ++i) b[i * n + i] = 1;
  for (size_t p = 0; p < n; ++p) {
    const double pivot = a[p * n + p];
    for (size_t j = 0; j < n; ++j) a[p * n + j] /= pivot, b[p * n + j] /= pivot;
    for (size_t i = 0; i < n; ++i) {
      const double factor = i == p ? 0 : a[i * n + p];
      if (factor == 0) continue;
      for (size_t j = 0; j < n; ++j)
        a[i * n + j] -= factor * a[p * n + j], b[i * n + j] -= factor * b[p * n + j];
    }
  }
  return b;
}

// Returns 2 / windows * X^T X, with 1 for dead channels and 1 % of the mean diagonal added.
Doubles damped_hessian(const std::vector<TokenRows>& windows) {
  const size_t n = windows.front().width;
  Doubles h(n * n);
  for (const TokenRows& x : windows) {
    for (uint32_t t = 0; t < x.count; ++t) {
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n; ++j)
          h[i * n + j] += 2.0 * x.row(t)[i] * x.row(t)[j] / static_cast<double>(windows.size());
      }
    }
  }
  double mean = 0;
  for (size_t i = 0; i < n; ++i) {
    if (h[i * n + i] == 0) h[i * n + i] = 1;
    mean += h[i * n + i] / static_cast<double>(n);
  }
  for (size_t i = 0; i < n; ++i) h[i * n + i] += 0.01 * mean;
  return h;
}

// The twin. `columns`: those of one choice over all rows. A group is chosen at its first column.
std::vector<float> surgeon(const std::vector<float>& weight, const std::vector<TokenRows>& windows,
                           const Pattern& pattern, size_t columns) {
  const size_t n = windows.front().width, rows = weight.size() / n;
  Doubles w(weight.begin(), weight.end());
  Doubles inverse = inverse_of(damped_hessian(windows), n);
  // Row j of the inverse of H without the columns before j, including its diagonal.
  std::vector<Doubles> row_at(n);
  for (size_t j = 0; j < n; ++j) {
    row_at[j] = Doubles(inverse.begin() + static_cast<std::ptrdiff_t>(j * n),
                        inverse.begin() + static_cast<std::ptrdiff_t>((j + 1) * n));
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = 0; b < n; ++b) inverse[a * n + b] -= row_at[j][a] * row_at[j][b] / row_at[j][j];
    }
    for (size_t a = 0; a < n; ++a) inverse[a * n + j] = inverse[j * n + a] = 0;
  }
  for (size_t j = 0; j < n; ++j) {
    bool dead = true;
    for (const TokenRows& x : windows) {
      for (uint32_t t = 0; t < x.count; ++t) dead = dead && x.row(t)[j] == 0;
    }
    for (size_t r = 0; dead && r < rows; ++r) w[r * n + j] = 0;
  }
  std::vector<uint8_t> pruned(w.size());
  const auto choose = [&](size_t first_row, size_t end_row, size_t from, size_t to, size_t count) {
    for (size_t i = 0; i < count; ++i) {  // the smallest remaining weights, one by one
      size_t best = w.size();
      double least = std::numeric_limits<double>::infinity();
      for (size_t r = first_row; r < end_row; ++r) {
        for (size_t j = from; j < to; ++j) {
          const double score = w[r * n + j] * w[r * n + j] / row_at[j][j];
          if (pruned[r * n + j] == 0 && score < least) least = score, best = r * n + j;
        }
      }
      pruned[best] = 1;
    }
  };
  for (size_t j = 0; j < n; ++j) {
    if (pattern.in_groups() && j % pattern.group == 0) {
      for (size_t r = 0; r < rows; ++r) choose(r, r + 1, j, j + pattern.group, pattern.group - pattern.kept);
    } else if (!pattern.in_groups() && j % columns == 0) {
      const size_t end = std::min(n, j + columns);
      choose(0, rows, j, end, static_cast<size_t>(static_cast<double>(rows * (end - j)) * pattern.sparsity));
    }
    for (size_t r = 0; r < rows; ++r) {
      if (pruned[r * n + j] == 0) continue;
      const double error = w[r * n + j] / row_at[j][j];
      for (size_t k = j; k < n; ++k) w[r * n + k] -= error * row_at[j][k];
      w[r * n + j] = 0;
    }
  }
  return {w.begin(), w.end()};
}

InverseHessian inverse_hessian_of(const std::vector<TokenRows>& windows, MatrixTeam& team) {
  InputStatistics statistics(windows.front().width, true);
  for (const TokenRows& x : windows) statistics.add(x, team);
  auto inverse = invert_hessian(statistics.take_gram(), statistics.width(), statistics.windows(), "test");
  EXPECT_TRUE(inverse.ok());
  return std::move(inverse).value();
}

// Returns ||(W - W') X||^2.
double output_error(const std::vector<float>& before, const std::vector<float>& after, const TokenRows& x) {
  double error = 0;
  for (size_t row = 0; row < before.size(); row += x.width) {
    for (uint32_t t = 0; t < x.count; ++t) {
      double sum = 0;
      for (uint32_t j = 0; j < x.width; ++j)
        sum += (static_cast<double>(before[row + j]) - after[row + j]) * x.row(t)[j];
      error += sum * sum;
    }
  }
  return error;
}

TEST(SparseGpt, DoesWhatTheSurgeonDoesColumnByColumn) {
  Random random(5);
  MatrixTeam team(2);
  struct Case {
    uint32_t rows, cols, tokens;
    Pattern pattern;
  };
  const Pattern two_of_four = *parse_groups("2:4"), one_of_three = *parse_groups("1:3");
  for (const auto& [rows, cols, tokens, pattern] :
       {Case{1, 1, 4, {0.5}},      // nothing is pruned
        Case{3, 20, 50, {0.5}},    //
        Case{3, 150, 300, {0.5}},  // a block, and a part of one
        Case{2, 260, 100, {0.7}},  // fewer tokens than channels: damping alone makes it definite
        Case{6, 129, 200, {0.3}},  // the last block has one column
        Case{4, 144, 200, two_of_four}, Case{3, 132, 90, one_of_three}}) {
    const std::vector<TokenRows> windows = {correlated_rows(random, tokens, cols),
                                            correlated_rows(random, tokens / 2, cols)};
    std::vector<float> weight = random_values(random, size_t{rows} * cols);
    const std::vector<float> expected = surgeon(weight, windows, pattern, 128);
    prune_by_sparsegpt(weight, inverse_hessian_of(windows, team), pattern, team);
    for (size_t i = 0; i < weight.size(); ++i) {
      ASSERT_NEAR(weight[i], expected[i], 2e-3) << rows << " x " << cols << ", " << i;
      ASSERT_EQ(weight[i] == 0, expected[i] == 0) << rows << " x " << cols << ", " << i;
    }
  }
}

TEST(SparseGpt, DeadChannelsAreZeroAndChosenFirst) {
  Random random(6);
  MatrixTeam team(1);
  std::vector<TokenRows> windows = {correlated_rows(random, 80, 40)};
  for (const uint32_t dead : {3u, 17u, 39u}) {
    for (uint32_t t = 0; t < windows[0].count; ++t) windows[0].row(t)[dead] = 0;
  }
  std::vector<float> weight = random_values(random, 6 * 40);
  const std::vector<float> expected = surgeon(weight, windows, {0.5}, 128);
  prune_by_sparsegpt(weight, inverse_hessian_of(windows, team), {0.5}, team);
  for (size_t i = 0; i < weight.size(); ++i) {
    EXPECT_NEAR(weight[i], expected[i], 1e-3) << i;
    if (i % 40 == 3 || i % 40 == 17 || i % 40 == 39) {
      EXPECT_EQ(weight[i], 0) << i;
    }
  }
  EXPECT_EQ(std::ranges::count(weight, 0.0f), 6 * 40 / 2);
}

TEST(SparseGpt, LosesLessThanThoseThatOnlyChoose) {
  Random random(7);
  MatrixTeam team(2);
  constexpr uint32_t kRows = 24, kCols = 192;
  const TokenRows x = correlated_rows(random, 400, kCols);
  const std::vector<float> before = random_values(random, kRows * kCols);
  InputStatistics statistics(kCols, true);
  statistics.add(x, team);
  const std::vector<float> norms = statistics.norms();
  const InverseHessian inverse = inverse_hessian_of({x}, team);
  for (const Pattern& pattern : {Pattern{0.5}, *parse_groups("2:4")}) {
    std::vector<float> magnitude = before, wanda = before, sparsegpt = before;
    prune_by_magnitude(magnitude, pattern);
    prune_by_wanda(wanda, norms, pattern);
    prune_by_sparsegpt(sparsegpt, inverse, pattern, team);
    EXPECT_EQ(std::ranges::count(sparsegpt, 0.0f), kRows * kCols / 2);
    EXPECT_LT(output_error(before, wanda, x), output_error(before, magnitude, x));
    EXPECT_LT(output_error(before, sparsegpt, x), 0.5 * output_error(before, wanda, x));
  }
}

TEST(InputStatistics, AreThoseOfTheirDefinition) {
  Random random(8);
  for (const uint32_t width : {1u, 15u, 64u, 100u}) {
    const TokenRows x = correlated_rows(random, 33, width);
    MatrixTeam one(1), two(2);
    InputStatistics statistics(width, true), again(width, true);
    statistics.add(x, one);
    again.add(x, two);
    const std::vector<float> norms = statistics.norms(), gram = statistics.take_gram();
    EXPECT_EQ(gram, again.take_gram()) << "bits depend on no number of threads";
    for (uint32_t a = 0; a < width; ++a) {
      float largest = 0;
      for (uint32_t b = 0; b <= a; ++b) {
        double sum = 0;
        for (uint32_t t = 0; t < x.count; ++t) {
          sum += static_cast<double>(x.row(t)[a]) * x.row(t)[b];
          largest = std::max(largest, std::fabs(x.row(t)[a]));
        }
        EXPECT_NEAR(gram[size_t{a} * width + b], sum, 1e-3 * (1 + std::fabs(sum)));
        if (a == b) {
          EXPECT_NEAR(norms[a], std::sqrt(sum), 1e-4 * (1 + std::sqrt(sum)));
        }
      }
      EXPECT_EQ(statistics.largest()[a], largest);
    }
  }
}

TEST(InverseHessian, ItsFactorGivesTheInverse) {
  Random random(9);
  MatrixTeam team(1);
  for (const uint32_t n : {1u, 2u, 63u, 65u, 130u}) {
    const std::vector<TokenRows> windows = {correlated_rows(random, 2 * n, n)};
    const InverseHessian inverse = inverse_hessian_of(windows, team);
    const Doubles expected = inverse_of(damped_hessian(windows), n);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        double sum = 0;
        for (size_t k = 0; k < n; ++k)
          sum += static_cast<double>(inverse.factor[k * n + i]) * inverse.factor[k * n + j];
        EXPECT_NEAR(sum, expected[i * n + j], 1e-3 * std::sqrt(expected[i * n + i] * expected[j * n + j]));
        if (j < i) {
          EXPECT_EQ(inverse.factor[i * n + j], 0);
        }
      }
    }
  }
}

TEST(InverseHessian, WhatIsNotFiniteIsALine) {
  const auto inverse = invert_hessian({1, 0, std::nanf(""), 1}, 2, 1, "model: layers.0.q");
  ASSERT_FALSE(inverse.ok());
  EXPECT_NE(inverse.error().line().find("layers.0.q"), std::string::npos);
}

}  // namespace
}  // namespace tierd
