// By how much a channel's values are multiplied so that it is among the largest as often as it shall be: all
// channels of an operator have values of one distribution, of which a larger factor lifts more above the
// threshold that the operator has.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/lab/planted/channel_profile.h"

namespace tierd {

class ChannelFactors {
 public:
  // `magnitudes`: a sample of the values' magnitudes before they are multiplied, not empty.
  ChannelFactors(const ChannelProfile& profile, std::vector<float> magnitudes);

  // Returns the factor of a channel whose rate `uniform`, a uniform random number, chooses. The mean rate, a
  // / (a + b), has 1.
  float of(uint32_t uniform) const { return factors_[uniform >> (32 - kBits)]; }
  // Returns that rate: how often the channel is among the larger ones.
  float rate(uint32_t uniform) const { return rates_[uniform >> (32 - kBits)]; }
  double mean_square() const { return mean_square_; }

 private:
  static constexpr int kBits = 12;

  std::vector<float> factors_, rates_;
  double mean_square_ = 0;
};

}  // namespace tierd
