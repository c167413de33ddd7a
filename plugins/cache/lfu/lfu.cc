// Evicts the neuron that was used least often since the start, edition by edition; of equals the lowest
// number. A missing neuron is loaded even if it was used less often than every resident one: it is being used
// now.
#include <algorithm>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/policy/split.hpp"

namespace {

class Lfu {
 public:
  explicit Lfu(const tierd::Host& host) : host_(host), editions_(host.n_editions()) {
    for (uint32_t e = 0; e < host.n_editions(); ++e) {
      editions_[e].uses.resize(host.edition(e).n);
      editions_[e].here.resize(host.edition(e).n);
    }
  }

  void share(uint64_t bytes, uint32_t* max_slots) { tierd::split_whole_first(host_, bytes, max_slots); }

  void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
    share(bytes, max_slots);
    victims.n = 0;
    for (uint32_t e = 0; e < host_.n_editions(); ++e) {
      auto& by_use = here(e, [](uint32_t) { return true; });
      std::sort(by_use.begin(), by_use.end());
      tierd::name_surplus(host_, e, by_use, max_slots[e], victims);
    }
  }

  void admit(const tierd_set_view& missing, int, uint32_t free_slots, uint8_t* verdict,
             tierd_victims_out& victims) {
    const uint32_t wanted = missing.n > free_slots ? std::min(missing.n - free_slots, victims.cap) : 0;
    victims.n = 0;
    if (wanted != 0) name_rarest(missing.edition, wanted, victims);
    const uint32_t kept = std::min(missing.n, free_slots + victims.n);
    for (uint32_t i = 0; i < missing.n; ++i) {
      verdict[i] = i < kept ? TIERD_VERDICT_KEEP : TIERD_VERDICT_BYPASS;
    }
  }

  void landed(uint32_t e, const uint32_t* idx, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) editions_[e].here[idx[i]] = true;
  }
  void dropped(uint32_t e, const uint32_t* idx, uint32_t n, int) {
    for (uint32_t i = 0; i < n; ++i) editions_[e].here[idx[i]] = false;
  }
  void touch(const tierd_set_view& used) {
    Edition& edition = editions_[used.edition];
    for (uint32_t i = 0; i < used.n; ++i) ++edition.uses[used.idx == nullptr ? i : used.idx[i]];
  }

 private:
  struct Edition {
    std::vector<uint64_t> uses;  // [n] steps since the start
    std::vector<uint8_t> here;   // [n] whether it is resident
  };
  struct Candidate {
    uint64_t uses;
    uint32_t neuron;
    operator uint32_t() const { return neuron; }
    bool operator<(const Candidate& other) const {
      return uses != other.uses ? uses < other.uses : neuron < other.neuron;
    }
  };

  // Lists the resident neurons that `takes` accepts, by number.
  template <class Takes>
  std::vector<Candidate>& here(uint32_t e, Takes takes) {
    const Edition& edition = editions_[e];
    candidates_.clear();
    for (uint32_t neuron = 0; neuron < edition.here.size(); ++neuron) {
      if (edition.here[neuron] && takes(neuron)) candidates_.push_back({edition.uses[neuron], neuron});
    }
    return candidates_;
  }

  // Names the least used neurons; their order does not matter, so they are not sorted.
  void name_rarest(uint32_t e, uint32_t wanted, tierd_victims_out& victims) {
    auto& rarest = here(e, [&](uint32_t neuron) { return host_.evictable(e, neuron); });
    if (wanted < rarest.size()) {
      std::nth_element(rarest.begin(), rarest.begin() + wanted, rarest.end());
      rarest.resize(wanted);
    }
    for (const uint32_t neuron : rarest) victims.item[victims.n++] = {e, neuron};
  }

  tierd::Host host_;
  std::vector<Edition> editions_;
  std::vector<Candidate> candidates_;  // used by one call
};

}  // namespace

TIERD_PLUGIN(tierd::cache<Lfu>("lfu", "1.0", "evicts the neurons that were used least often"))
