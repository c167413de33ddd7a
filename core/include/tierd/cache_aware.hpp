// Which neurons of a site a row uses, where those that are resident cost nothing to use (cache-aware masking:
// Federici et al., "Efficient LLM Inference using Dynamic Input Pruning and Cache-Aware Masking", 2024, who
// weigh what is not cached by a factor). Here the device's cost says what is not worth it: a read costs as
// much as `gap` bytes beyond those that it brings (tierd_memory_view.gap_bytes). So from what is missing runs
// of neighbours are chosen, the reading of which takes the least time of all that lose at most so much of the
// energy of the inputs, the sum of their squares: a weak channel between strong ones is used as well, and a
// strong one that lies alone may be left out. Every resident channel is used. Optional; C++17, header-only.
#ifndef TIERD_CACHE_AWARE_HPP
#define TIERD_CACHE_AWARE_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace tierd {

class CacheAware {
 public:
  // `request`: what a read costs beside the channels that it brings, in channels. `resident` [n]: 1 where
  // nothing need be read. `most`: the energy that may be lost. `price`, in channels for a unit of energy, is
  // where the search begins and where it has ended: one of each operator's own, 0 before the first call.
  // Returns the energy that is lost; `used` [n] becomes 1 where a channel is used, which those that are zero
  // never are.
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
    uint32_t passed;  // resident channels between the one before and this one
  };
  // The way so far that costs least, of those whose last channel is read or not, and what it has lost.
  struct Way {
    double cost = 0, lost = 0;
  };
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static constexpr int kMostSteps = 60;
  static constexpr double kStride = 1.5;
  static constexpr double kMostPrice = 1e30;    // at which all is read that is above zero
  static constexpr double kCloseEnough = 0.97;  // of what may be lost
  // What is lost jumps where a long run is read or is not. Between two prices as near as this no better one
  // is sought (40 steps without this bound, 9 with it).
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

  // The least price at which no more than `most` is lost: the higher, the less is. As the sets of one token
  // are much like those of the next, so is the price, and few steps are needed.
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

  // The cheapest way through all missing channels, where a read costs `request`, each channel that it brings
  // or passes 1, and each that is not read its energy times `price`. Returns the energy that it loses.
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

  // From the end of the way that was remembered back to its beginning.
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

  // These are filled anew in each call; they are members so that their memory is reused.
  std::vector<Missing> missing_;
  std::vector<uint8_t> ended_, begun_;  // [missing]: of the way that was remembered
  bool reads_at_end_ = false;
};

}  // namespace tierd
#endif
