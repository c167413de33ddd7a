#include "core/activity/hidden_activity.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/activity/normal.h"
#include "core/activity/random_bits.h"

namespace tierd {

HiddenActivity::HiddenActivity(const Options& options) : options_(options), sequences_(options.sequences) {
  const std::vector<uint64_t> none((options.channels + 63) / 64, 0);
  for (Sequence& sequence : sequences_) sequence.bits.assign(options.layers, none);
}

void HiddenActivity::next_token(uint32_t sequence) {
  Sequence& of = sequences_[sequence];
  const uint64_t place = uint64_t{sequence} << 32 | static_cast<uint32_t>(of.tokens++);
  const double rest = std::sqrt(1 - options_.cosine * options_.cosine);
  const auto kept = static_cast<uint32_t>(std::lround(options_.kept * options_.channels));
  std::vector<double> x(options_.channels, 0);
  std::vector<uint32_t> order(options_.channels);
  for (uint32_t l = 0; l < options_.layers; ++l) {
    const RandomBits random(options_.seed, DrawnFor::hidden_state, l, place);
    for (uint32_t i = 0; i < options_.channels; ++i) {
      const double e = normal_of(random.half(i));
      x[i] = l == 0 ? e : options_.cosine * x[i] + rest * e;
    }
    std::iota(order.begin(), order.end(), 0u);
    const auto larger = [&](uint32_t i, uint32_t j) { return std::abs(x[i]) > std::abs(x[j]); };
    std::nth_element(order.begin(), order.begin() + kept, order.end(), larger);
    std::ranges::fill(of.bits[l], 0);
    for (uint32_t k = 0; k < kept; ++k) of.bits[l][order[k] / 64] |= uint64_t{1} << order[k] % 64;
  }
}

}  // namespace tierd
