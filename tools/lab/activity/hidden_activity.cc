#include "tools/lab/activity/hidden_activity.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tierd {

HiddenActivity::HiddenActivity(const Options& options)
    : states_({.layers = options.layers,
               .channels = options.channels,
               .cosine = options.cosine,
               .seed = options.seed,
               .sequences = options.sequences}),
      kept_(static_cast<uint32_t>(std::lround(options.kept * options.channels))) {
  const std::vector<uint64_t> none((options.channels + 63) / 64, 0);
  bits_.assign(options.sequences, std::vector(options.layers, none));
}

void HiddenActivity::next_token(uint32_t sequence) {
  states_.next_token(sequence);
  std::vector<uint32_t> order(states_.options().channels);
  for (uint32_t l = 0; l < layers(); ++l) {
    const std::span<const float> x = states_.state(sequence, l);
    std::iota(order.begin(), order.end(), 0u);
    const auto larger = [&](uint32_t i, uint32_t j) { return std::abs(x[i]) > std::abs(x[j]); };
    std::nth_element(order.begin(), order.begin() + kept_, order.end(), larger);
    std::vector<uint64_t>& bits = bits_[sequence][l];
    std::ranges::fill(bits, 0);
    for (uint32_t k = 0; k < kept_; ++k) bits[order[k] / 64] |= uint64_t{1} << order[k] % 64;
  }
}

}  // namespace tierd
