#include "tools/cost_model/cache_aware_cost.h"

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <cmath>
#include <functional>

#include "core/activity/normal.h"
#include "core/base/random.h"
#include "tierd/cache_aware.hpp"

namespace tierd {
namespace {

constexpr int kTokens = 4;  // that are drawn
constexpr double kTextShape = 4.25;
constexpr uint32_t kQuantiles = 1024;
constexpr double kLeastRate = 0.001;

// [kQuantiles] rates of a text's channels, rising, in equal shares of them.
const std::vector<float>& text_rates() {
  static const std::vector<float> rates = [] {
    const boost::math::beta_distribution<double> text(kTextShape, kTextShape);
    std::vector<float> quantiles;
    for (uint32_t i = 0; i < kQuantiles; ++i)
      quantiles.push_back(static_cast<float>(boost::math::quantile(text, (i + 0.5) / kQuantiles)));
    return quantiles;
  }();
  return rates;
}

std::vector<float> rates_of(const ChannelOperator& of, bool by_rate, Random& random) {
  std::vector<float> rates = of.rates;
  for (uint64_t i = rates.size(); i < of.channels; ++i)
    rates.push_back(text_rates()[random.below(kQuantiles)]);
  if (by_rate) std::ranges::sort(rates, std::greater<>());
  return rates;
}

// A normal input times this is among the larger half as often as the rate says.
double factor_of(double rate) {
  const double held = std::clamp(rate, kLeastRate, 1 - kLeastRate);
  return normal_quantile(0.75) / normal_quantile(1 - held / 2);
}

}  // namespace

CacheAwareCost cache_aware_cost(const CostModel& model, double cache_bytes, double sparsity, bool by_rate) {
  const double all = model.layer_bytes() * model.layers;
  const ReadCurve::Request request = model.flash.request();
  CacheAwareCost cost;
  cost.kept = std::clamp(cache_bytes / all, 0.0, 1.0);
  Random random(1);
  CacheAware mask;
  double used_bytes = 0;
  double passes = 0;  // a token, in which something is read
  for (const ChannelOperator& of : model.operators) {
    const std::vector<float> rates = rates_of(of, by_rate, random);
    const auto n = static_cast<uint32_t>(rates.size());
    const auto kept = static_cast<uint32_t>(cost.kept * n);
    std::vector<uint8_t> resident(n, 0), used(n, 0);
    std::fill_n(resident.begin(), kept, uint8_t{1});
    const auto channel = static_cast<double>(of.channel_bytes);
    double price = 0;
    for (int token = 0; token < kTokens; ++token) {
      std::vector<float> x(n);
      for (uint32_t i = 0; i < n; ++i)
        x[i] = static_cast<float>(factor_of(rates[i]) *
                                  std::abs(normal_of(static_cast<uint32_t>(random.next() >> 32))));
      std::vector<float> sorted = x;
      const auto border = sorted.begin() + static_cast<std::ptrdiff_t>(sparsity * n);
      std::nth_element(sorted.begin(), border, sorted.end());
      double energy = 0, most = 0;
      for (const float value : x) {
        energy += double{value} * value;
        most += value < *border ? double{value} * value : 0;
      }
      const double lost = mask.choose(x.data(), n, static_cast<double>(request.bytes()) / channel,
                                      resident.data(), most, price, used.data());
      double reads = 0, read = 0;
      for (uint32_t i = kept; i < n; ++i) {
        reads += used[i] != 0 && (i == kept || used[i - 1] == 0) ? 1 : 0;
        read += used[i];
      }
      const double share = static_cast<double>(model.layers) / kTokens;
      cost.reads += reads * share;
      passes += reads > 0 ? share : 0;
      cost.flash_bytes += read * channel * share;
      used_bytes += static_cast<double>(std::ranges::count(used, 1)) * channel * share;
      cost.lost += lost / energy / kTokens / static_cast<double>(model.operators.size());
      cost.lost_of_largest += most / energy / kTokens / static_cast<double>(model.operators.size());
    }
  }
  if (cost.flash_bytes > 0 && request.bytes_per_second > 0)
    cost.disk = cost.reads * request.seconds + cost.flash_bytes / request.bytes_per_second;
  else if (cost.flash_bytes > 0)
    cost.disk = cost.flash_bytes / model.flash.points().back().bytes_per_second;
  cost.disk += passes * model.first_read;
  cost.compute = (used_bytes + static_cast<double>(model.head_bytes)) / model.memory_rate;
  cost.steady_token = std::max(cost.disk, cost.compute);
  return cost;
}

}  // namespace tierd
