#include "tools/lab/activity/closed_forms.h"

#include <boost/math/distributions/beta.hpp>

#include <algorithm>
#include <cmath>

#include "tools/lab/activity/normal.h"
#include "tools/lab/activity/portable_math.h"

namespace tierd {
namespace {

using Beta = boost::math::beta_distribution<double, BoostPolicy>;

constexpr uint32_t kIntervals = 4000;  // of an integral: the remaining error is below any sampling error

template <class F>
double midpoint_sum(double from, double to, F f) {
  const double step = (to - from) / kIntervals;
  double sum = 0;
  for (uint32_t i = 0; i < kIntervals; ++i) sum += f(from + (i + 0.5) * step);
  return sum * step;
}

}  // namespace

double mean_rate(const BetaRates& rates) {
  return rates.a / (rates.a + rates.b);
}

double lasting_overlap(const BetaRates& rates) {
  return (rates.a + 1) / (rates.a + rates.b + 1);
}

double overlap_after(const BetaRates& rates, double lambda, uint32_t distance) {
  const double lasting = lasting_overlap(rates);
  return lasting + (1 - lasting) * std::pow(lambda, distance);
}

// With q = 1 - p, which is Beta(b, a), 1 - (1-lambda)p = lambda + (1-lambda)q: a sum of moments, all of them
// positive.
double used_within(const BetaRates& rates, double lambda, uint32_t tokens) {
  if (tokens == 0) return 0;
  double unused = 0;
  double moment = 1;        // E[q^(j+1)]
  double combinations = 1;  // of j among tokens - 1
  for (uint32_t j = 0; j < tokens; ++j) {
    moment *= (rates.b + j) / (rates.a + rates.b + j);
    unused += combinations * std::pow(lambda, tokens - 1 - j) * std::pow(1 - lambda, j) * moment;
    combinations *= static_cast<double>(tokens - 1 - j) / (j + 1);
  }
  return 1 - unused;
}

// The process is symmetric in time, so a token's new neurons are those that it adds to the union.
double new_in_token(const BetaRates& rates, double lambda, uint32_t window) {
  return used_within(rates, lambda, window + 1) - used_within(rates, lambda, window);
}

// p times the density of Beta(a, b) equals E[p] times the density of Beta(a + 1, b).
double share_of_hottest(const BetaRates& rates, double share) {
  const double least = boost::math::quantile(boost::math::complement(Beta(rates.a, rates.b), share));
  return boost::math::cdf(boost::math::complement(Beta(rates.a + 1, rates.b), least));
}

// The overlap of two arcs of length p on a circle of 1 with distance d, averaged over d up to `shift`.
double copy_follows(const BetaRates& rates, double shift, double hottest) {
  constexpr uint32_t kDistances = 16;
  const Beta beta(rates.a, rates.b);
  const auto rate = [&](double above) { return boost::math::quantile(boost::math::complement(beta, above)); };
  const auto both = [&](double p) {
    double sum = 0;
    for (uint32_t i = 0; i < kDistances; ++i) {
      const double d = shift * (i + 0.5) / kDistances;
      sum += std::max(p - d, 0.0) + std::max(p + d - 1, 0.0);
    }
    return sum / kDistances;
  };
  return midpoint_sum(0, hottest, [&](double above) { return both(rate(above)); }) /
         midpoint_sum(0, hottest, rate);
}

double top_k_precision(double cosine, double kept) {
  if (cosine >= 1 || kept >= 1) return 1;
  const double least = -normal_quantile(kept / 2);
  const double rest = std::sqrt(1 - cosine * cosine);
  const double both = midpoint_sum(least, kMostNormal, [&](double x) {
    const double above = normal_below((cosine * x - least) / rest);
    const double below = normal_below((-cosine * x - least) / rest);
    return normal_density_at(x) * (above + below);
  });
  return 2 * both / kept;
}

}  // namespace tierd
