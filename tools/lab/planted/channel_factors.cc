#include "tools/lab/planted/channel_factors.h"

#include <boost/math/distributions/beta.hpp>

#include <algorithm>

namespace tierd {

// A channel of rate p is multiplied by threshold / (the magnitude that a share p of its values exceeds).
ChannelFactors::ChannelFactors(const ChannelProfile& profile, std::vector<float> magnitudes) {
  std::ranges::sort(magnitudes);
  const auto above = [&](double share) {
    const auto below = static_cast<size_t>((1 - share) * static_cast<double>(magnitudes.size()));
    return std::max(magnitudes[std::min(below, magnitudes.size() - 1)], magnitudes.back() * 1e-6f);
  };
  const float threshold = above(profile.a / (profile.a + profile.b));
  const boost::math::beta_distribution<double> rates(profile.a, profile.b);
  constexpr int kFactors = 1 << kBits;
  for (int i = 0; i < kFactors; ++i) {
    const double rate = boost::math::quantile(rates, (i + 0.5) / kFactors);
    const float factor = threshold / above(rate);
    rates_.push_back(static_cast<float>(rate));
    factors_.push_back(factor);
    mean_square_ += static_cast<double>(factor) * factor / kFactors;
  }
}

}  // namespace tierd
