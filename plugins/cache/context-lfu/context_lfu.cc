// ActiveFlow's dynamic weight caching (4.2). Counts how often every neuron of each edition was used in the
// present context. A missing neuron is loaded to stay if there is room. Otherwise it takes the place of the
// evictable neuron with the least count, if its own count, this use included, is greater; else it passes
// through. Among equal counts the least recently used neuron is evicted, then the one with the lowest number.
//
// The same rule applies to reads ahead, as if they were used now, but they count nothing before they are
// used.
//
// Counts may fade, so that recent uses weigh more: between the paper's rule (1) and least recently used (0)
// is the range that D. Lee et al. call LRFU (2001).
#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/policy/split.hpp"

namespace {

constexpr tierd_param kParams[] = {
    tierd::text("counts", "context", "context|task",
                "when counts are reset: context, at a sequence that begins while no other one is active; "
                "task, never (the paper compares both)"),
    tierd::number("fade", "1", 0, 1,
                  "factor of a count at each use of its operator: 1, no decay, as in the paper; 0.7, half "
                  "after two tokens; 0, only the last use counts"),
    tierd::text("split", "even", "even|small-first",
                "division of the budget: even, the same share of each operator's neurons, as in the paper; "
                "small-first, whole operators with small channels first, because small reads cost more for "
                "their bytes"),
};

class ContextLfu {
 public:
  explicit ContextLfu(const tierd::Host& host)
      : host_(host),
        by_context_(std::strcmp(host.text("counts"), "context") == 0),
        small_first_(std::strcmp(host.text("split"), "small-first") == 0),
        left_(left_of(host.number("fade"))),
        editions_(host.n_editions()) {
    for (uint32_t e = 0; e < host.n_editions(); ++e) {
      const uint32_t n = host.edition(e).n;
      editions_[e] = {std::vector<float>(n), std::vector<uint32_t>(n), std::vector<uint8_t>(n), 0};
    }
  }

  void begin_sequence(uint64_t sequence) {
    if (by_context_ && live_.empty()) {
      for (Edition& edition : editions_) std::fill(edition.uses.begin(), edition.uses.end(), 0.0F);
    }
    live_.insert(sequence);
  }
  void end_sequence(uint64_t sequence) { live_.erase(sequence); }

  void share(uint64_t bytes, uint32_t* max_slots) {
    if (small_first_) {
      tierd::split_small_first(host_, bytes, max_slots);
    } else {
      tierd::split_whole_first(host_, bytes, max_slots);
    }
  }

  void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
    share(bytes, max_slots);
    victims.n = 0;
    for (uint32_t e = 0; e < host_.n_editions(); ++e) {
      const std::vector<uint8_t>& is_here = editions_[e].here;
      const auto here = static_cast<uint32_t>(std::count(is_here.begin(), is_here.end(), 1));
      if (here <= max_slots[e]) continue;
      const uint32_t room = victims.cap - victims.n;
      for (const Leaver& leaver : first_to_leave(e, std::min(here - max_slots[e], room), kAnyUses))
        victims.item[victims.n++] = {e, leaver.neuron};
    }
  }

  void admit(const tierd_set_view& missing, int /*priority*/, uint32_t free_slots, uint8_t* verdict,
             tierd_victims_out& victims) {
    victims.n = 0;
    std::fill_n(verdict, missing.n, uint8_t{TIERD_VERDICT_KEEP});
    if (missing.n <= free_slots) return;
    const std::vector<Comer>& comers = most_used_first(missing);
    const uint32_t most = std::min(missing.n - free_slots, victims.cap);
    const std::vector<Leaver>& leavers = first_to_leave(missing.edition, most, comers.front().uses);
    for (uint32_t c = free_slots; c < comers.size(); ++c) {
      const uint32_t l = c - free_slots;
      // Further on, arrivals are rarer and evictable neurons were used more often.
      if (l < leavers.size() && comers[c].uses > leavers[l].uses) {
        victims.item[victims.n++] = {missing.edition, leavers[l].neuron};
      } else {
        verdict[comers[c].place] = TIERD_VERDICT_BYPASS;
      }
    }
  }

  void landed(uint32_t e, const uint32_t* idx, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) editions_[e].here[idx[i]] = 1;
  }
  void dropped(uint32_t e, const uint32_t* idx, uint32_t n, int /*why*/) {
    for (uint32_t i = 0; i < n; ++i) editions_[e].here[idx[i]] = 0;
  }

  void touch(const tierd_set_view& used) {
    Edition& edition = editions_[used.edition];
    ++edition.now;
    for (uint32_t i = 0; i < used.n; ++i) {
      const uint32_t neuron = used.idx == nullptr ? i : used.idx[i];
      edition.uses[neuron] = uses_at(edition, neuron, edition.now) + 1;
      edition.last[neuron] = edition.now;
    }
  }

 private:
  static constexpr float kAnyUses = std::numeric_limits<float>::infinity();

  struct Edition {
    std::vector<float> uses;     // [n] uses in the present context, as of the last use
    std::vector<uint32_t> last;  // [n] the pass that used it last; 0: none
    std::vector<uint8_t> here;   // [n] whether it is resident
    uint32_t now = 0;            // passes so far
  };
  struct Comer {
    float uses;      // this use included
    uint32_t place;  // index in the missing set
    bool operator<(const Comer& other) const {
      return uses != other.uses ? uses > other.uses : place < other.place;
    }
  };
  struct Leaver {
    float uses;
    uint32_t last;
    uint32_t neuron;
    bool operator<(const Leaver& other) const {
      return std::tie(uses, last, neuron) < std::tie(other.uses, other.last, other.neuron);
    }
  };

  // Returns [passes] the remaining part of a count after so many passes, until it is negligible; empty:
  // counts do not fade.
  static std::vector<float> left_of(double fade) {
    constexpr double kNothing = 1e-7;
    constexpr size_t kMostPasses = 1u << 16;
    std::vector<float> left;
    if (fade == 1) return left;
    for (double now = 1; now > kNothing && left.size() < kMostPasses; now *= fade)
      left.push_back(static_cast<float>(now));
    return left;
  }
  float uses_at(const Edition& edition, uint32_t neuron, uint32_t pass) const {
    if (left_.empty()) return edition.uses[neuron];
    const uint32_t passes = pass - edition.last[neuron];
    return passes < left_.size() ? edition.uses[neuron] * left_[passes] : 0.0F;
  }

  const std::vector<Comer>& most_used_first(const tierd_set_view& missing) {
    const Edition& edition = editions_[missing.edition];
    comers_.clear();
    for (uint32_t i = 0; i < missing.n; ++i) {
      const uint32_t neuron = missing.idx == nullptr ? i : missing.idx[i];
      comers_.push_back({uses_at(edition, neuron, edition.now + 1) + 1, i});
    }
    std::sort(comers_.begin(), comers_.end());
    return comers_;
  }

  // Returns the first `most` neurons to evict, in order: resident, evictable and used less than `below`
  // times. Only these are sorted.
  const std::vector<Leaver>& first_to_leave(uint32_t e, uint32_t most, float below) {
    const Edition& edition = editions_[e];
    leavers_.clear();
    for (uint32_t neuron = 0; neuron < edition.here.size(); ++neuron) {
      if (edition.here[neuron] == 0) continue;
      const float uses = uses_at(edition, neuron, edition.now + 1);
      if (uses < below && host_.evictable(e, neuron))
        leavers_.push_back({uses, edition.last[neuron], neuron});
    }
    if (most < leavers_.size()) {
      std::nth_element(leavers_.begin(), leavers_.begin() + most, leavers_.end());
      leavers_.resize(most);
    }
    std::sort(leavers_.begin(), leavers_.end());
    return leavers_;
  }

  tierd::Host host_;
  bool by_context_;
  bool small_first_;
  std::vector<float> left_;
  std::vector<Edition> editions_;
  std::set<uint64_t> live_;  // sequences
  // Each call fills these anew; they are members so that their memory is reused.
  std::vector<Comer> comers_;
  std::vector<Leaver> leavers_;
};

}  // namespace

TIERD_PLUGIN(tierd::with_params(
    tierd::cache<ContextLfu>("context-lfu", "1.0",
                             "keeps the neurons that the present context uses most often (ActiveFlow 4.2)"),
    kParams))
