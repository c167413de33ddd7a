// The split of a cache that learns, as a text goes on, how many neurons each edition needs. Sites that a step
// uses whole are served first. The others share the rest evenly until all needs are known, then in proportion
// to their needs. Optional; C++17, header-only.
#ifndef TIERD_POLICY_SPLIT_BY_NEED_HPP
#define TIERD_POLICY_SPLIT_BY_NEED_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/policy/split.hpp"

namespace tierd {

// `needs`, below: [editions] mean number of neurons needed by an edition that a step uses in part; negative:
// not known yet.
class SplitByNeed {
 public:
  // `at_once`: the first token gives needs for a useful first split; otherwise means require some steps.
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

  // Reports that some edition had less room than it would have used.
  void falls_short() { was_short_ = true; }

  // For `resplit`, called after every step: returns whether another split of the same bytes would serve
  // better, that is, whether some edition fell short and the present needs give a different split.
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
  // Another split is considered every kStepsASplit steps; it must change more than kLeastMisfit.
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
  uint64_t bytes_ = 0;  // the bytes that are split
  std::vector<uint32_t> most_, slots_;
  bool knew_ = false;       // whether all needs were known at the last split
  uint32_t steps_ = 0;      // since the last split
  bool was_short_ = false;  // since the last split
};

}  // namespace tierd
#endif
