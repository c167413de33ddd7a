// The split of a cache that learns, as a text goes on, how many neurons each edition needs. What is used
// whole has its room first; what is used in part shares the rest in proportion to its need, once all needs
// are known, and evenly before. Optional; C++17, header-only.
#ifndef TIERD_SPLIT_BY_NEED_HPP
#define TIERD_SPLIT_BY_NEED_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/split.hpp"

namespace tierd {

// `needs`, below: [editions] neurons that one which is used in part needs, on the mean; negative: not known
// yet.
class SplitByNeed {
 public:
  // `at_once`: the first token knows the needs well enough for a first split; else needs are means that take
  // some steps to be of use.
  SplitByNeed(const Host& host, bool at_once) : host_(host), at_once_(at_once) {}

  // For `share` and `resize`. max_slots[e]: in, the most; out, the share.
  void share(uint64_t bytes, uint32_t* max_slots, const std::vector<double>& needs) {
    bytes_ = bytes;
    most_.assign(max_slots, max_slots + host_.n_editions());
    knew_ = knows_all(needs);
    slots_ = split(needs);
    steps_ = 0;
    was_short_ = false;
    std::copy(slots_.begin(), slots_.end(), max_slots);
  }

  // Some edition had less room than it would have used.
  void falls_short() { was_short_ = true; }

  // For `resplit`, which is asked after every step: whether another split of the same bytes would serve
  // better, since some edition fell short, and other room for each would make a difference.
  bool is_due(const std::vector<double>& needs) {
    const bool first = at_once_ && !knew_ && knows_all(needs);
    if (++steps_ < kStepsASplit && !first) return false;
    if (!was_short_) return false;
    steps_ = 0;
    const std::vector<uint32_t> better = split(needs);
    double misfit = 0, sum = 0;
    for (uint32_t e = 0; e < host_.n_editions(); ++e) {
      if (!in_part(e)) continue;
      misfit += std::abs(static_cast<double>(better[e]) - static_cast<double>(slots_[e])) / 2;
      sum += slots_[e];
    }
    return misfit > kLeastMisfit * sum;
  }

 private:
  // Another split is considered every so many steps, and worth its moves if it changes more than this share.
  static constexpr uint32_t kStepsASplit = 8;
  static constexpr double kLeastMisfit = 1.0 / 64;

  bool in_part(uint32_t edition) const { return used_in_part(host_.site_of(edition)); }

  bool knows_all(const std::vector<double>& needs) const {
    bool known = true;
    for (uint32_t e = 0; e < host_.n_editions(); ++e) known = known && (!in_part(e) || needs[e] >= 0);
    return known;
  }

  std::vector<uint32_t> split(const std::vector<double>& needs) const {
    std::vector<uint32_t> slots = most_;
    const bool known = knows_all(needs);
    split_whole_first(host_, bytes_, slots.data(), [&](uint32_t e) {
      return known ? std::max(1.0, needs[e]) : static_cast<double>(host_.edition(e).n);
    });
    return slots;
  }

  Host host_;
  bool at_once_;
  uint64_t bytes_ = 0;  // each edition has its share of them
  std::vector<uint32_t> most_, slots_;
  bool knew_ = false;       // all needs, when the bytes were split
  uint32_t steps_ = 0;      // since then
  bool was_short_ = false;  // since then
};

}  // namespace tierd
#endif
