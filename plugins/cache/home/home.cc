// Neurons whose home is in the memory stay there: from the start, and when the balancer moves them there
// later. A neuron that has got another home stays until its slot is needed, since both copies are equal. All
// other neurons pass through staging.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/split.hpp"

namespace {

class Home {
 public:
  explicit Home(const tierd::Host& host) : host_(host), here_(host.n_editions()) {
    for (uint32_t e = 0; e < host.n_editions(); ++e) here_[e].assign(host.edition(e).n, 0);
  }

  // Gives slots to the neurons at home; the rest of the bytes is room for neurons that may move here, the
  // same share of each edition used in part.
  void share(uint64_t bytes, uint32_t* max_slots) {
    const std::vector<uint32_t> most(max_slots, max_slots + host_.n_editions());
    std::vector<uint32_t> homes;
    for (uint32_t e = 0; e < host_.n_editions(); ++e) homes.push_back(std::min(at_home(e), most[e]));
    std::fill_n(max_slots, host_.n_editions(), 0u);
    bytes = tierd::split_in_proportion(host_, bytes, homes, max_slots, [&](uint32_t e) { return homes[e]; });
    std::vector<uint32_t> rest(host_.n_editions(), 0);
    const auto may_come = [&](uint32_t e) {
      return homes[e] != 0 && tierd::used_in_part(host_.site_of(e)) ? most[e] - max_slots[e] : 0;
    };
    std::vector<uint32_t> room;
    for (uint32_t e = 0; e < host_.n_editions(); ++e) room.push_back(may_come(e));
    (void)tierd::split_in_proportion(host_, bytes, room, rest.data(), [&](uint32_t e) { return room[e]; });
    for (uint32_t e = 0; e < host_.n_editions(); ++e) max_slots[e] += rest[e];
    slots_.assign(max_slots, max_slots + host_.n_editions());
  }

  void fill() {
    for (uint32_t e = 0; e < host_.n_editions(); ++e) {
      std::vector<uint32_t> wanted;
      for (uint32_t i = 0; i < host_.edition(e).n && wanted.size() < slots_[e]; ++i) {
        if (host_.at_home(e, i)) wanted.push_back(i);
      }
      if (!wanted.empty()) host_.want(e, wanted.data(), static_cast<uint32_t>(wanted.size()));
    }
  }

  void admit(const tierd_set_view& missing, int priority, uint32_t free_slots, uint8_t* verdict,
             tierd_victims_out& victims) {
    const uint32_t e = missing.edition;
    const uint8_t otherwise =
        priority == TIERD_PRIORITY_MIGRATION ? TIERD_VERDICT_REFUSE : TIERD_VERDICT_BYPASS;
    victims.n = 0;
    uint32_t next = 0;
    for (uint32_t i = 0; i < missing.n; ++i) {
      const uint32_t neuron = missing.idx == nullptr ? i : missing.idx[i];
      verdict[i] = otherwise;
      // A neuron that moves here is not at home yet.
      if (priority != TIERD_PRIORITY_MIGRATION && !host_.at_home(e, neuron)) continue;
      if (free_slots > 0) {
        --free_slots;
      } else if (victims.n == victims.cap || !name_guest(e, next, victims)) {
        continue;
      }
      verdict[i] = TIERD_VERDICT_KEEP;
    }
  }

  void landed(uint32_t edition, const uint32_t* idx, uint32_t n) { mark(edition, idx, n, 1); }
  void dropped(uint32_t edition, const uint32_t* idx, uint32_t n, int /*why*/) { mark(edition, idx, n, 0); }

  void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
    share(bytes, max_slots);
    victims.n = 0;
    for (uint32_t e = 0; e < host_.n_editions(); ++e) {
      std::vector<uint32_t> order;
      for (uint32_t i = 0; i < host_.edition(e).n; ++i) {
        if (here_[e][i] != 0) order.push_back(i);
      }
      std::stable_partition(order.begin(), order.end(),
                            [&](uint32_t neuron) { return !host_.at_home(e, neuron); });
      tierd::name_surplus(host_, e, order, max_slots[e], victims);
    }
  }

 private:
  uint32_t at_home(uint32_t edition) const {
    uint32_t n = 0;
    for (uint32_t i = 0; i < host_.edition(edition).n; ++i) n += host_.at_home(edition, i) ? 1 : 0;
    return n;
  }
  void mark(uint32_t edition, const uint32_t* idx, uint32_t n, uint8_t here) {
    for (uint32_t i = 0; i < n; ++i) here_[edition][idx[i]] = here;
  }
  // Names the next neuron, from `next` on, whose home is elsewhere now.
  bool name_guest(uint32_t edition, uint32_t& next, tierd_victims_out& victims) const {
    const std::vector<uint8_t>& here = here_[edition];
    for (; next < here.size(); ++next) {
      if (here[next] == 0 || host_.at_home(edition, next) || !host_.evictable(edition, next)) continue;
      victims.item[victims.n++] = {edition, next++};
      return true;
    }
    return false;
  }

  tierd::Host host_;
  std::vector<std::vector<uint8_t>> here_;  // [editions][n] whether it is resident
  std::vector<uint32_t> slots_;             // [editions]
};

}  // namespace

TIERD_PLUGIN(tierd::cache<Home>("home", "1.0", "what has its home in the memory stays, and what moves there"))
