// The factors of an operator's channels. All channels have values of one distribution; multiplying a
// channel's values by a larger factor puts more of them above the operator's threshold, so the factor sets
// how often the channel is among the largest.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/lab/planted/channel_profile.h"

namespace tierd {

class ChannelFactors {
 public:
  // `magnitudes`: a sample of the values' magnitudes before the multiplication, not empty.
  ChannelFactors(const ChannelProfile& profile, std::vector<float> magnitudes);

  // Returns the factor of a channel whose rate is drawn by `uniform`, a uniform random number. The mean rate,
  // a / (a + b), has factor 1.
  float of(uint32_t uniform) const { return factors_[uniform >> (32 - kBits)]; }
  // Returns the rate of that channel: how often it is among the larger ones.
  float rate(uint32_t uniform) const { return rates_[uniform >> (32 - kBits)]; }
  double mean_square() const { return mean_square_; }

 private:
  static constexpr int kBits = 12;

  std::vector<float> factors_, rates_;
  double mean_square_ = 0;
};

}  // namespace tierd
