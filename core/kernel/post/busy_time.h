// How long something was busy: overlapping intervals count once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tierd {

class BusyTime {
 public:
  using Interval = std::pair<uint64_t, uint64_t>;  // from the first to the second, ns

  void add(uint64_t begin_ns, uint64_t end_ns) { intervals_.emplace_back(begin_ns, end_ns); }
  // Returns the intervals added since the last call of `take`, in no order.
  const std::vector<Interval>& intervals() const { return intervals_; }

  // Returns the length in ns of the union of the intervals added since the last call.
  uint64_t take() {
    std::sort(intervals_.begin(), intervals_.end());
    uint64_t ns = 0, counted_until = 0;
    for (const auto& [begin, end] : intervals_) {
      const uint64_t from = std::max(begin, counted_until);
      if (end <= from) continue;
      ns += end - from;
      counted_until = end;
    }
    intervals_.clear();
    return ns;
  }

 private:
  std::vector<Interval> intervals_;
};

}  // namespace tierd
