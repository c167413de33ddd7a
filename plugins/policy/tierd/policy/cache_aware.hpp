// Cache-aware masking: chooses which neurons (input channels) of a site a row uses, where resident channels
// cost nothing (Federici et al., "Efficient LLM Inference using Dynamic Input Pruning and Cache-Aware
// Masking", 2024, weigh channels that are not cached by a factor). This version uses the device's cost
// instead: a read costs as much as `gap` bytes beyond the bytes that it fetches
// (tierd_memory_view.gap_bytes). Among the missing channels the algorithm chooses runs of neighbours. Their
// reads take the least time of all choices that lose at most a given part of the energy of the inputs (the
// sum of their squares). So a weak channel between strong ones is used as well, and an isolated strong one
// may be left out. Every resident channel is used. Optional; C++17, header-only.
#ifndef TIERD_POLICY_CACHE_AWARE_HPP
#define TIERD_POLICY_CACHE_AWARE_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace tierd {

class CacheAware {
 public:
  // Chooses the channels of one row. `request`: the cost of a read beyond the channels that it fetches, in
  // channels. `resident` [n]: 1 for a channel that need not be read. `most`: the energy that may be lost.
  // `price`, in channels per unit of energy: in, where the search begins (0 before the first call); out,
  // where it ended. Each operator has a price of its own. Writes `used` [n]: 1 for each channel that is used;
  // a channel whose value is zero never is. Returns the energy that is lost.
  double choose(const float* magnitudes, uint32_t n, double request, const uint8_t* resident, double most,
                double& price, uint8_t* used) {
    gather(magnitudes, n, resident);
    double energy = 0;
    for (const Missing& missing : missing_) energy += missing.energy;
    const bool all = !(most > 0), none = energy <= most;
    if (!all && !none) {
      const auto mean = energy / static_cast<double>(missing_.size());
      price = cheapest(request, most, price > 0 ? price : 1 / mean);
      energy = walk<true>(request, price);
    }
    for (uint32_t i = 0; i < n; ++i) used[i] = magnitudes[i] > 0 && (all || resident[i] != 0) ? 1 : 0;
    if (all) return 0;
    if (!none) mark_reads(magnitudes, n, resident, used);
    return energy;
  }

 private:
  struct Missing {
    float energy;
    uint32_t passed;  // resident channels between the previous missing channel and this one
  };
  // The cheapest choice so far that ends with its last channel read (or not read), and its loss of energy.
  struct Way {
    double cost = 0, lost = 0;
  };
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static constexpr int kMostSteps = 60;
  static constexpr double kStride = 1.5;
  static constexpr double kMostPrice = 1e30;    // at this price every channel above zero is read
  static constexpr double kCloseEnough = 0.97;  // as a share of the energy that may be lost
  // The energy lost is a step function of the price, because a long run of channels is either read or not.
  // The search stops when two prices are this close (40 steps without this bound, 9 with it).
  static constexpr double kNarrow = 1.001;

  void gather(const float* magnitudes, uint32_t n, const uint8_t* resident) {
    missing_.clear();
    uint32_t passed = 0;
    for (uint32_t i = 0; i < n; ++i) {
      if (resident[i] != 0) {
        ++passed;
        continue;
      }
      missing_.push_back({magnitudes[i] * magnitudes[i], passed});
      passed = 0;
    }
  }

  // Returns the least price at which at most `most` is lost; a higher price loses less. The sets of
  // consecutive tokens are similar, so their prices are too, and few steps are needed.
  double cheapest(double request, double most, double from) {
    double low = 0, high = kNever, at = std::min(from, kMostPrice);
    for (int step = 0; step < kMostSteps; ++step) {
      const double lost = walk<false>(request, at);
      (lost > most ? low : high) = at;
      if (lost <= most && lost >= kCloseEnough * most) break;
      if (low > 0 && high <= kNarrow * low) break;
      if (low == 0) {
        at /= kStride;
      } else {
        at = high == kNever ? at * kStride : std::sqrt(low * high);
      }
    }
    return high == kNever ? kMostPrice : high;
  }

  // Finds the cheapest choice over all missing channels. A read costs `request`, each channel that it fetches
  // or passes over 1, each channel that is not read its energy times `price`. Returns the lost energy.
  template <bool kRemember>
  double walk(double request, double price) {
    Way away, reading{kNever, 0};
    if (kRemember) ended_.resize(missing_.size()), begun_.resize(missing_.size());
    for (size_t i = 0; i < missing_.size(); ++i) {
      const Missing& missing = missing_[i];
      const bool end = reading.cost < away.cost;
      Way next_away = end ? reading : away;
      const double begin = next_away.cost + request, go_on = reading.cost + missing.passed;
      const bool begins = begin < go_on;
      Way next_reading{(begins ? begin : go_on) + 1, begins ? next_away.lost : reading.lost};
      next_away.cost += price * missing.energy;
      next_away.lost += missing.energy;
      if (kRemember) ended_[i] = end ? 1 : 0, begun_[i] = begins ? 1 : 0;
      away = next_away, reading = next_reading;
    }
    reads_at_end_ = reading.cost < away.cost;
    return reads_at_end_ ? reading.lost : away.lost;
  }

  // Follows the choice that `walk` remembered from its end to its beginning.
  void mark_reads(const float* magnitudes, uint32_t n, const uint8_t* resident, uint8_t* used) {
    bool reading = reads_at_end_;
    size_t left = missing_.size();
    for (uint32_t i = n; i-- > 0;) {
      if (resident[i] != 0) continue;
      --left;
      used[i] = reading && magnitudes[i] > 0 ? 1 : 0;
      if (!reading || begun_[left] != 0) reading = ended_[left] != 0;
    }
  }

  // Each call fills these anew; they are members so that their memory is reused.
  std::vector<Missing> missing_;
  std::vector<uint8_t> ended_, begun_;  // [missing] the choice that `walk` remembered
  bool reads_at_end_ = false;
};

}  // namespace tierd
#endif
