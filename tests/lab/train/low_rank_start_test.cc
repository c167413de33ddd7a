// The start beside a plain computation: the error of the best approximation of a rank is the sum of the
// eigenvalues that the rank leaves out, which Jacobi's method finds without Eigen.
#include "tools/lab/train/low_rank_start.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "core/base/random.h"

namespace tierd {
namespace {

constexpr uint32_t kStartTokens = 400;

// Row by row, square.
using Matrix = std::vector<double>;

// Returns the eigenvalues of a symmetric matrix, the largest first.
std::vector<double> eigenvalues(Matrix m, uint32_t n) {
  for (int sweep = 0; sweep < 12; ++sweep) {
    for (uint32_t p = 0; p < n; ++p) {
      for (uint32_t q = p + 1; q < n; ++q) {
        if (m[p * n + q] == 0) continue;
        const double theta = (m[q * n + q] - m[p * n + p]) / (2 * m[p * n + q]);
        const double t = std::copysign(1 / (std::abs(theta) + std::hypot(theta, 1)), theta);
        const double cosine = 1 / std::hypot(t, 1), sine = t * cosine;
        for (uint32_t i = 0; i < n; ++i) {
          const double a = m[i * n + p], b = m[i * n + q];
          m[i * n + p] = cosine * a - sine * b;
          m[i * n + q] = sine * a + cosine * b;
        }
        for (uint32_t i = 0; i < n; ++i) {
          const double a = m[p * n + i], b = m[q * n + i];
          m[p * n + i] = cosine * a - sine * b;
          m[q * n + i] = sine * a + cosine * b;
        }
      }
    }
  }
  std::vector<double> values;
  for (uint32_t i = 0; i < n; ++i) values.push_back(m[i * n + i]);
  std::ranges::sort(values, std::greater<>());
  return values;
}

struct StartCase {
  uint32_t d_model = 0, d_ff = 0;
  Decision decision;
  std::vector<float> x;
  std::vector<double> mean;
  std::vector<double> scores;  // weight (x - mean), [tokens x d_ff]
};

// Inputs that vary more in some channels than in others, around a mean that is not zero.
StartCase make_start_case(uint32_t d_model, uint32_t d_ff) {
  Random random(11);
  StartCase world{d_model, d_ff, {}, {}, std::vector<double>(d_model), {}};
  world.decision.weight.resize(d_ff * d_model);
  for (float& value : world.decision.weight) value = random.symmetric();
  world.decision.bias.resize(d_ff);
  for (float& value : world.decision.bias) value = random.symmetric();
  for (uint32_t t = 0; t < kStartTokens; ++t) {
    const float shared = random.symmetric();
    for (uint32_t i = 0; i < d_model; ++i) {
      const float value = 1 + shared + random.symmetric() * 20 / static_cast<float>(10 + i);
      world.x.push_back(value);
      world.mean[i] += double{value} / kStartTokens;
    }
  }
  for (uint32_t t = 0; t < kStartTokens; ++t) {
    for (uint32_t n = 0; n < d_ff; ++n) {
      double score = 0;
      for (uint32_t i = 0; i < d_model; ++i)
        score += world.decision.weight[n * d_model + i] * (world.x[t * d_model + i] - world.mean[i]);
      world.scores.push_back(score);
    }
  }
  return world;
}

LowRank start(const StartCase& world, uint32_t rank, uint32_t threads = 1) {
  Team team({.workers = threads});
  InputMoments moments(world.d_model);
  const size_t half = world.x.size() / world.d_model / 2 * world.d_model;
  moments.add(team, std::span(world.x).first(half));
  moments.add(team, std::span(world.x).subspan(half));
  const LowRank made = start_of(world.decision, moments, rank, team);
  EXPECT_EQ(team.launches() > 0, threads > 1);
  return made;
}

// The scores' covariance has the eigenvalues of R weight^T weight R, R R being the covariance of the inputs.
void expect_the_best(const StartCase& world, uint32_t rank, double tolerance) {
  SCOPED_TRACE(rank);
  const LowRank found = start(world, rank);
  Matrix covariance(world.d_ff * world.d_ff);
  for (uint32_t t = 0; t < kStartTokens; ++t) {
    const double* const row = &world.scores[t * world.d_ff];
    for (uint32_t i = 0; i < world.d_ff; ++i) {
      for (uint32_t j = 0; j < world.d_ff; ++j)
        covariance[i * world.d_ff + j] += row[i] * row[j] / kStartTokens;
    }
  }
  const std::vector<double> energies = eigenvalues(covariance, world.d_ff);
  const double all = std::accumulate(energies.begin(), energies.end(), 0.0);
  const double least = std::accumulate(energies.begin() + rank, energies.end(), 0.0);
  const double scale = 2 / std::sqrt(all / world.d_ff);

  std::vector<float> scores(kStartTokens * world.d_ff);
  score(found, world.x, scores);
  std::vector<double> of_mean(world.d_ff);
  for (uint32_t n = 0; n < world.d_ff; ++n) {
    of_mean[n] = world.decision.bias[n];
    for (uint32_t i = 0; i < world.d_model; ++i)
      of_mean[n] += world.decision.weight[n * world.d_model + i] * world.mean[i];
  }
  double missed = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    const double off = scores[i] / scale - of_mean[i % world.d_ff] - world.scores[i];
    missed += off * off / kStartTokens;
  }
  EXPECT_GT(missed, least - 1e-4 * all);
  EXPECT_LT(missed, least + tolerance * all);

  for (uint32_t k = 0; k < rank; ++k) {
    double variance = 0;
    for (uint32_t t = 0; t < kStartTokens; ++t) {
      double along = 0;
      for (uint32_t i = 0; i < world.d_model; ++i)
        along += found.a[k * world.d_model + i] * (world.x[t * world.d_model + i] - world.mean[i]);
      variance += along * along / kStartTokens;
    }
    EXPECT_NEAR(variance, 1, 1e-3) << k;
  }
}

TEST(LowRankStart, IsTheBestApproximationOfTheRank) {
  const StartCase world = make_start_case(16, 40);
  for (const uint32_t rank : {1U, 5U, 16U}) expect_the_best(world, rank, 1e-4);
}

TEST(LowRankStart, SubspaceIterationFindsNearlyTheBest) {
  expect_the_best(make_start_case(150, 64), 6, 1e-3);
}

TEST(LowRankStart, HasTheSameBitsWithAnyNumberOfThreads) {
  const StartCase world = make_start_case(150, 64);
  const LowRank one = start(world, 6), two = start(world, 6, 2);
  EXPECT_EQ(one.a, two.a);
  EXPECT_EQ(one.b, two.b);
  EXPECT_EQ(one.bias, two.bias);
}

}  // namespace
}  // namespace tierd
