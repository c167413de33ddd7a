#include "tools/lab/plan/cache_aware_cost.h"

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <cmath>
#include <functional>

#include "core/base/random.h"
#include "tierd/policy/cache_aware.hpp"
#include "tools/lab/activity/normal.h"

namespace tierd {
namespace {

constexpr int kTokens = 4;  // tokens that are drawn
constexpr double kTextShape = 4.25;
constexpr uint32_t kQuantiles = 1024;
constexpr double kLeastRate = 0.001;

// [kQuantiles] the rates of a text's channels, ascending, at equal steps of probability.
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

// A normal input times this factor is among the larger half as often as the rate says.
double factor_of(double rate) {
  const double held = std::clamp(rate, kLeastRate, 1 - kLeastRate);
  return normal_quantile(0.75) / normal_quantile(1 - held / 2);
}

// The cost of one operator for one token.
struct OperatorCost {
  double reads = 0, read_bytes = 0, read_channels = 0, used_bytes = 0;
  double lost = 0, lost_of_largest = 0;  // shares of the energy
};

// Chooses the channels of one token after the other.
class DrawnOperator {
 public:
  DrawnOperator(const ChannelOperator& of, const CacheAwareRun& run, double kept, double gap_bytes,
                Random& random)
      : rates_(rates_of(of, run.by_rate, random)),
        kept_(static_cast<uint32_t>(kept * static_cast<double>(rates_.size()))),
        smallest_(static_cast<size_t>(run.sparsity * static_cast<double>(rates_.size()))),
        channel_bytes_(static_cast<double>(of.channel_bytes)),
        gap_(gap_bytes / channel_bytes_),
        random_(random),
        resident_(rates_.size(), 0),
        used_(rates_.size(), 0) {
    std::fill_n(resident_.begin(), kept_, uint8_t{1});
  }

  OperatorCost draw() {
    const auto n = static_cast<uint32_t>(rates_.size());
    std::vector<float> x(n);
    for (uint32_t i = 0; i < n; ++i) {
      const float normal = normal_of(static_cast<uint32_t>(random_.next() >> 32));
      x[i] = static_cast<float>(factor_of(rates_[i]) * std::abs(normal));
    }
    std::vector<float> sorted = x;
    const auto border = sorted.begin() + static_cast<std::ptrdiff_t>(smallest_);
    std::nth_element(sorted.begin(), border, sorted.end());
    double energy = 0, most = 0;
    for (const float value : x) {
      energy += double{value} * value;
      most += value < *border ? double{value} * value : 0;
    }
    const double lost = mask_.choose(x.data(), n, gap_, resident_.data(), most, price_, used_.data());
    OperatorCost cost{.lost = lost / energy, .lost_of_largest = most / energy};
    for (uint32_t i = kept_; i < n; ++i) {
      cost.reads += used_[i] != 0 && (i == kept_ || used_[i - 1] == 0) ? 1 : 0;
      cost.read_channels += used_[i];
    }
    cost.read_bytes = cost.read_channels * channel_bytes_;
    cost.used_bytes = static_cast<double>(std::ranges::count(used_, 1)) * channel_bytes_;
    return cost;
  }

 private:
  const std::vector<float> rates_;
  const uint32_t kept_;
  const size_t smallest_;
  const double channel_bytes_, gap_;  // the gap in channels
  Random& random_;
  std::vector<uint8_t> resident_, used_;
  CacheAware mask_;
  double price_ = 0;
};

double disk_seconds(const CostModel& model, const OperatorCost& cost) {
  if (cost.reads == 0) return 0;
  const ReadCurve::Request request = model.flash.request();
  const double transfer = request.bytes_per_second > 0
                              ? cost.reads * request.seconds + cost.read_bytes / request.bytes_per_second
                              : cost.read_bytes / model.flash.points().back().bytes_per_second;
  return transfer + model.first_read;
}

// Returns the bytes of all layers' operators, either of experts or of the others.
double bytes_of(const CostModel& model, bool experts) {
  double bytes = 0;
  for (const ChannelOperator& of : model.operators) {
    if ((of.copies > 1) == experts) bytes += of.layer_bytes() * model.layers;
  }
  return bytes;
}

double share_of(double part, double whole) {
  return whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0;
}

}  // namespace

CacheAwareCost cache_aware_cost(const CostModel& model, const CacheAwareRun& run) {
  const auto gap_bytes = static_cast<double>(model.flash.request().gap_bytes());
  const double always = bytes_of(model, false);
  CacheAwareCost cost;
  cost.kept = share_of(run.cache_bytes, always);
  cost.kept_of_experts = share_of(run.cache_bytes - always, bytes_of(model, true));
  Random random(1);
  for (const ChannelOperator& of : model.operators) {
    DrawnOperator drawn(of, run, of.copies > 1 ? cost.kept_of_experts : cost.kept, gap_bytes, random);
    for (int token = 0; token < kTokens; ++token) {
      const OperatorCost one = drawn.draw();
      const double disk = disk_seconds(model, one);
      const double compute = one.used_bytes / model.memory_rate;
      const double choosing =
          static_cast<double>(of.channels) * model.choose_seconds + one.read_channels * model.handle_seconds;
      const double share = static_cast<double>(model.layers) * of.passed / kTokens;
      cost.reads += one.reads * share;
      cost.flash_bytes += one.read_bytes * share;
      cost.disk += disk * share;
      cost.compute += compute * share;
      cost.choosing += choosing * share;
      cost.steady_token += std::max(disk, choosing + std::max((1 - run.ahead) * disk, compute)) * share;
      const double part = kTokens * static_cast<double>(model.operators.size());
      cost.lost += one.lost / part;
      cost.lost_of_largest += one.lost_of_largest / part;
    }
  }
  const double streamed_head = std::max(0.0, -run.cache_bytes);
  cost.flash_bytes += streamed_head;
  cost.disk += streamed_head / model.flash.points().back().bytes_per_second;
  cost.compute += static_cast<double>(model.head_bytes) / model.memory_rate;
  cost.steady_token += model.head_seconds(streamed_head);
  return cost;
}

}  // namespace tierd
