// Hermes' neurons on the GPU (section 4.2.2): copies of the hot ones. Neurons whose home is here stay. Beside
// them the memory holds the neurons that the partition, or a random draw, selects at the start, and later the
// hottest. A neuron that is hotter than `hot`, not resident, and hotter than the coolest copy takes that
// copy's place while the DIMMs have nothing to compute. Nothing is written back, since the DIMMs keep all
// neurons. Ties are broken at random: by number all winners would be on the same DIMM.
//
// Neurons that a pass misses are not kept: the pass is a prompt's, which only passes through.
#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/policy/split.hpp"

namespace {

constexpr uint8_t kHottest = TIERD_HOTTEST;

constexpr tierd_param kParams[] = {
    tierd::integer("hot", "10", 0, 15, "heat above which a neuron may be copied here; 15: none is"),
    tierd::integer("sites", "2", 1, 64, "number of following sites whose copies are updated at a time"),
};

constexpr const char* kManual =
    "Tables: `tier partition` writes SITE.hot, which has 1 for each neuron that is here from the start, else "
    "0. Set tiers.NAME.cache.tensors = \"FILE.safetensors\". Without tables the first neurons are drawn with "
    "run.seed. Without [heat] they never change.";

class HotSet {
 public:
  explicit HotSet(const tierd::Host& host)
      : host_(host),
        hot_(static_cast<uint32_t>(host.integer("hot"))),
        sites_at_once_(static_cast<uint32_t>(host.integer("sites"))),
        lot_(host.seed() * 0x9e3779b97f4a7c15 + 1),
        copies_(host.n_editions()),
        here_(host.n_editions()),
        n_here_(host.n_editions(), 0) {
    for (uint32_t e = 0; e < host.n_editions(); ++e) {
      here_[e].assign(host.edition(e).n, 0);
      read_hot(e);
    }
  }

  // Serves neurons at home first, then copies: as many of each edition as the partition names, or the same
  // share of each.
  void share(uint64_t bytes, uint32_t* max_slots) {
    const std::vector<uint32_t> most(max_slots, max_slots + host_.n_editions());
    std::fill_n(max_slots, host_.n_editions(), 0u);
    std::vector<uint32_t> homes, copies;
    for (uint32_t e = 0; e < host_.n_editions(); ++e) {
      const uint32_t n = at_home(e);
      homes.push_back(std::min(n, most[e]));
      const bool copied = n == 0 && tierd::used_in_part(host_.site_of(e));
      copies.push_back(!copied ? 0 : copies_[e].empty() ? most[e] : static_cast<uint32_t>(copies_[e].size()));
    }
    bytes = tierd::split_in_proportion(host_, bytes, homes, max_slots, [&](uint32_t e) { return homes[e]; });
    (void)tierd::split_in_proportion(host_, bytes, most, max_slots,
                                     [&](uint32_t e) { return homes[e] != 0 ? 0 : copies[e]; });
    slots_.assign(max_slots, max_slots + host_.n_editions());
  }

  void fill() {
    for (uint32_t e = 0; e < host_.n_editions(); ++e) {
      std::vector<uint32_t> wanted;
      for (uint32_t i = 0; i < host_.edition(e).n && wanted.size() < slots_[e]; ++i) {
        if (host_.at_home(e, i)) wanted.push_back(i);
      }
      if (wanted.empty() && slots_[e] != 0) wanted = first_copies(e);
      if (!wanted.empty()) host_.want(e, wanted.data(), static_cast<uint32_t>(wanted.size()));
    }
  }

  void idle(uint32_t site) {
    uint32_t looked_after = 0;
    for (uint32_t k = 1; k <= host_.n_sites() && looked_after < sites_at_once_; ++k) {
      const uint32_t next = (site + k) % host_.n_sites();
      const uint32_t e = host_.site(next).editions[0];
      if (slots_[e] == 0 || !tierd::used_in_part(host_.site(next)) || host_.at_home(e, 0)) continue;
      ++looked_after;
      if (const uint8_t* heat = host_.heat(next)) wish_for_hotter(e, heat);
    }
  }

  void admit(const tierd_set_view& missing, int priority, uint32_t free_slots, uint8_t* verdict,
             tierd_victims_out& victims) {
    const uint32_t e = missing.edition;
    victims.n = 0;
    if (priority != TIERD_PRIORITY_MIGRATION) {
      for (uint32_t i = 0; i < missing.n; ++i) {
        const bool keep = free_slots > 0 && host_.at_home(e, missing.idx == nullptr ? i : missing.idx[i]);
        free_slots -= keep ? 1 : 0;
        verdict[i] = keep ? TIERD_VERDICT_KEEP : TIERD_VERDICT_BYPASS;
      }
      return;
    }
    const uint8_t* const heat = host_.heat(host_.edition(e).site);
    uint8_t hottest = 0;
    for (uint32_t i = 0; heat != nullptr && i < missing.n; ++i)
      hottest = std::max(hottest, heat[missing.idx == nullptr ? i : missing.idx[i]]);
    std::vector<uint32_t> leaving = cooler_than(hottest, e, heat);
    sort_by_heat(leaving, heat);
    size_t next = 0;
    for (uint32_t i = 0; i < missing.n; ++i) {
      const uint32_t neuron = missing.idx == nullptr ? i : missing.idx[i];
      verdict[i] = TIERD_VERDICT_REFUSE;
      if (free_slots > 0) {
        --free_slots;
      } else if (next == leaving.size() || heat[leaving[next]] >= heat[neuron]) {
        continue;
      } else {
        victims.item[victims.n++] = {e, leaving[next++]};
      }
      verdict[i] = TIERD_VERDICT_KEEP;
      ++moved_;
    }
    host_.metric("moved in", static_cast<double>(moved_));
  }

  void landed(uint32_t edition, const uint32_t* idx, uint32_t n) { mark(edition, idx, n, 1); }
  void dropped(uint32_t edition, const uint32_t* idx, uint32_t n, int /*why*/) { mark(edition, idx, n, 0); }

  void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
    share(bytes, max_slots);
    victims.n = 0;
    for (uint32_t e = 0; e < host_.n_editions(); ++e) {
      // Copies are evicted first, the coolest of them before all others.
      std::vector<uint32_t> order = all_here(e);
      if (const uint8_t* const heat = host_.heat(host_.edition(e).site)) sort_by_heat(order, heat);
      std::stable_partition(order.begin(), order.end(), [&](uint32_t i) { return !host_.at_home(e, i); });
      tierd::name_surplus(host_, e, order, max_slots[e], victims);
    }
  }

 private:
  void read_hot(uint32_t e) {
    const tierd_site_view& site = host_.site_of(e);
    const std::string name = std::string(site.name) + ".hot";
    if (!host_.has_tensor(name.c_str())) return;
    const tierd_tensor_view hot = host_.tensor(name.c_str());
    if (hot.n_dims != 1 || hot.dims[0] != site.n)
      throw tierd::Failure(TIERD_E_INVALID, name + " should be " + std::to_string(site.n) + " values");
    for (uint32_t i = 0; i < site.n; ++i) {
      if (hot.data[i] > 0) copies_[e].push_back(i);
    }
  }

  uint32_t at_home(uint32_t edition) const {
    uint32_t n = 0;
    for (uint32_t i = 0; i < host_.edition(edition).n; ++i) n += host_.at_home(edition, i) ? 1 : 0;
    return n;
  }

  std::vector<uint32_t> first_copies(uint32_t e) {
    std::vector<uint32_t> wanted = copies_[e];
    if (wanted.empty()) {
      wanted.resize(host_.edition(e).n);
      std::iota(wanted.begin(), wanted.end(), 0u);
    }
    const size_t n = std::min<size_t>(wanted.size(), slots_[e]);
    draw(wanted, n);
    wanted.resize(n);
    std::sort(wanted.begin(), wanted.end());
    return wanted;
  }

  // Wishes for the hottest missing neurons, as far as there is room for them or they are hotter than the
  // coolest copies. Called whenever the DIMMs are idle; mostly there is nothing to exchange.
  void wish_for_hotter(uint32_t e, const uint8_t* heat) {
    const uint32_t n = host_.edition(e).n;
    const uint8_t* const here = here_[e].data();
    uint8_t hottest = 0, coolest = kHottest;
    for (uint32_t i = 0; i < n; ++i) {
      hottest = std::max<uint8_t>(hottest, here[i] != 0 ? 0 : heat[i]);
      coolest = std::min<uint8_t>(coolest, here[i] != 0 ? heat[i] : kHottest);
    }
    const uint32_t free_slots = slots_[e] - std::min(slots_[e], n_here_[e]);
    const uint32_t above = free_slots != 0 ? hot_ : std::max<uint32_t>(hot_, coolest);
    if (hottest <= above) return;
    Counts arriving{}, leaving{};
    hot_ones_.clear();
    for (uint32_t i = 0; i < n; ++i) {
      if (here[i] != 0 || heat[i] <= above) continue;
      hot_ones_.push_back(i);
      ++arriving[heat[i]];
    }
    for (const uint32_t i : cooler_than(hottest, e, heat)) ++leaving[heat[i]];
    const size_t room = std::min<size_t>(hot_ones_.size(), free_slots);
    keep_hottest(hot_ones_, heat, arriving, room + exchanges(arriving, leaving, room));
    if (!hot_ones_.empty()) host_.want(e, hot_ones_.data(), static_cast<uint32_t>(hot_ones_.size()));
  }

  using Counts = std::array<size_t, kHottest + 1>;  // numbers of neurons by heat

  // Returns how many arriving neurons, after the hottest `room`, are hotter than the copy that each replaces:
  // the hottest replaces the coolest, and so on.
  static size_t exchanges(Counts arriving, Counts leaving, size_t room) {
    size_t n = 0;
    for (size_t hot = kHottest, cool = 0; cool < hot;) {
      const size_t held = std::min(room, arriving[hot]);
      room -= held, arriving[hot] -= held;
      const size_t some = std::min(arriving[hot], leaving[cool]);
      n += some, arriving[hot] -= some, leaving[cool] -= some;
      if (arriving[hot] == 0) {
        --hot;
      } else {
        ++cool;
      }
    }
    return n;
  }

  // Keeps the `n` hottest of the neurons, ascending; ties at the border are broken at random.
  void keep_hottest(std::vector<uint32_t>& neurons, const uint8_t* heat, const Counts& counts, size_t n) {
    size_t border = kHottest, left = n;  // `left`: places for neurons with the heat `border`
    while (border > 0 && counts[border] <= left) left -= counts[border--];
    std::vector<uint32_t> equals;
    for (const uint32_t i : neurons) {
      if (heat[i] == border) equals.push_back(i);
    }
    draw(equals, left);
    std::sort(equals.begin(), equals.begin() + static_cast<std::ptrdiff_t>(left));
    const auto stays = [&](uint32_t i) {
      return heat[i] > border ||
             (heat[i] == border &&
              std::binary_search(equals.begin(), equals.begin() + static_cast<std::ptrdiff_t>(left), i));
    };
    neurons.erase(std::remove_if(neurons.begin(), neurons.end(), [&](uint32_t i) { return !stays(i); }),
                  neurons.end());
  }

  std::vector<uint32_t> all_here(uint32_t e) const {
    std::vector<uint32_t> here;
    for (uint32_t i = 0; i < here_[e].size(); ++i) {
      if (here_[e][i] != 0) here.push_back(i);
    }
    return here;
  }

  // Returns resident neurons that are evictable and cooler than `hottest`.
  std::vector<uint32_t> cooler_than(uint8_t hottest, uint32_t e, const uint8_t* heat) const {
    std::vector<uint32_t> cooler;
    for (uint32_t i = 0; hottest != 0 && i < here_[e].size(); ++i) {
      if (here_[e][i] != 0 && heat[i] < hottest && host_.evictable(e, i) && !host_.at_home(e, i))
        cooler.push_back(i);
    }
    return cooler;
  }

  // Sorts the coolest first, ties at random.
  void sort_by_heat(std::vector<uint32_t>& neurons, const uint8_t* heat) {
    draw(neurons, neurons.size());
    std::stable_sort(neurons.begin(), neurons.end(),
                     [&](uint32_t a, uint32_t b) { return heat[a] < heat[b]; });
  }

  // Moves `n` randomly drawn neurons to the front, determined by the seed and the earlier draws.
  void draw(std::vector<uint32_t>& neurons, size_t n) {
    for (size_t i = 0; i < n && i + 1 < neurons.size(); ++i) {
      lot_ ^= lot_ << 13, lot_ ^= lot_ >> 7, lot_ ^= lot_ << 17;
      std::swap(neurons[i], neurons[i + lot_ % (neurons.size() - i)]);
    }
  }

  void mark(uint32_t edition, const uint32_t* idx, uint32_t n, uint8_t here) {
    for (uint32_t i = 0; i < n; ++i) {
      n_here_[edition] += here;
      n_here_[edition] -= here_[edition][idx[i]];
      here_[edition][idx[i]] = here;
    }
  }

  tierd::Host host_;
  const uint32_t hot_;
  const uint32_t sites_at_once_;
  uint64_t lot_;
  std::vector<std::vector<uint32_t>> copies_;  // [editions] copies that the partition names; empty: none
  std::vector<std::vector<uint8_t>> here_;     // [editions][n] whether it is resident
  std::vector<uint32_t> n_here_;               // [editions] number of resident neurons
  std::vector<uint32_t> slots_;                // [editions]
  std::vector<uint32_t> hot_ones_;             // used by one function, kept for its memory
  uint64_t moved_ = 0;
};

}  // namespace

TIERD_PLUGIN(tierd::with_manual(
    tierd::with_params(tierd::cache<HotSet>("hot-set", "1.0", "keeps copies of the hottest neurons (Hermes)"),
                       kParams),
    kManual))
