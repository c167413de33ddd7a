// Hermes' neuron mapper (sections 4.2 and 4.3). Sites that every step uses whole, such as projections, have
// their home with one unit, the hot one. All other neurons have homes with the other units, the cold ones, as
// a partition says or as they are dealt out. The hot unit computes the neurons of which it has a copy; others
// are computed at home. The hot unit computes prompts.
//
// Every `window` passes of a site, algorithm 1 remaps it: it sums how many of its neurons each cold unit has
// computed, and pairs the unit with the most with the one with the least, the second with the last but one,
// and so on. The heavier unit of each pair gives its most active neurons to the lighter one while that
// reduces their difference. (The paper prints the condition of that loop the other way round, so that it
// would never move anything.) The neurons move while no cold unit computes.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/split.hpp"

namespace {

constexpr tierd_param kParams[] = {
    tierd::text("hot", "gpu", nullptr, "the tier of the hot unit; all other units are cold"),
    tierd::integer("window", "5", 0, 1 << 20,
                   "so many passes of a site between two remappings of it; 0: none"),
    tierd::text("start", "even", "even|random",
                "homes that no partition names: the cold units in turn, or by lot (run.seed)"),
    tierd::flag("prompts_hot", "true", "prompts are computed by the hot unit; else as everything is"),
};

constexpr const char* kManual =
    "Tables: tier-partition writes SITE.home, for each neuron the number of its cold unit from 0; then "
    "balancer.tensors = "
    "\"FILE.safetensors\".";

class HotCold {
 public:
  explicit HotCold(const tierd::Host& host)
      : host_(host),
        window_(static_cast<uint32_t>(host.integer("window"))),
        random_(std::string_view(host.text("start")) == "random"),
        prompts_hot_(host.flag("prompts_hot")),
        lot_(host.seed() * 0x9e3779b97f4a7c15 + 1),
        windows_(host.n_sites()) {
    const std::string_view name = host.text("hot");
    hot_ = TIERD_NO_UNIT;
    for (uint32_t u = 0; u < host.n_units() && hot_ == TIERD_NO_UNIT; ++u) {
      if (name == host.memory(host.unit(u).memory).tier) hot_ = u;
    }
    if (hot_ == TIERD_NO_UNIT) {
      hot_ = host.n_units() - 1;
      host.log(TIERD_LOG_WARNING,
               "no tier '" + std::string(name) + "' computes (balancer.hot): the last unit is the hot one");
    }
    for (uint32_t u = 0; u < host.n_units(); ++u) {
      if (u != hot_ || host.n_units() == 1) cold_.push_back(u);
    }
  }

  void place(uint32_t edition, uint8_t* home) {
    const tierd_site_view& site = host_.site_of(edition);
    const uint32_t n = host_.edition(edition).n;
    if (is_whole(site)) return (void)std::fill_n(home, n, static_cast<uint8_t>(hot_));
    const std::string name = std::string(site.name) + ".home";
    if (host_.has_tensor(name.c_str())) return take_homes(name, n, home);
    for (uint32_t i = 0; i < n; ++i) {
      lot_ ^= lot_ << 13, lot_ ^= lot_ >> 7, lot_ ^= lot_ << 17;
      home[i] = static_cast<uint8_t>(cold_[(random_ ? lot_ >> 32 : i) % cold_.size()]);
    }
  }

  void assign(const tierd_set_view& set, uint8_t* unit) {
    const tierd_site_view& site = host_.site(set.site);
    if (!tierd::used_in_part(site)) {
      for (uint32_t i = 0; i < set.n; ++i)
        unit[i] = static_cast<uint8_t>(host_.home(site.editions[0], set.idx == nullptr ? i : set.idx[i]));
      return;
    }
    if (set.prompt != 0 && prompts_hot_) return (void)std::fill_n(unit, set.n, static_cast<uint8_t>(hot_));
    const uint64_t here = uint64_t{1} << host_.unit(hot_).memory;
    Window& window = windows_[set.site];
    window.active.resize(site.n, 0);
    uint64_t hot = 0;
    for (uint32_t i = 0; i < set.n; ++i) {
      const uint32_t neuron = set.idx == nullptr ? i : set.idx[i];
      const uint32_t edition = site.editions[set.level == nullptr ? 0 : set.level[i]];
      const bool is_hot = (host_.holders(edition, neuron) & here) != 0;
      unit[i] = static_cast<uint8_t>(is_hot ? hot_ : host_.home(edition, neuron));
      hot += is_hot ? 1 : 0;
      window.active[neuron] += is_hot ? 0 : 1;
    }
    ++window.passes;
    computed_ += set.n;
    computed_hot_ += hot;
    if (computed_ != 0)
      host_.metric("hot share", static_cast<double>(computed_hot_) / static_cast<double>(computed_));
  }

  // Remaps the sites whose window is full.
  void rebalance(uint32_t /*site*/) {
    for (uint32_t s = 0; window_ != 0 && s < host_.n_sites(); ++s) {
      if (windows_[s].passes < window_) continue;
      remap(s);
      windows_[s].passes = 0;
      std::fill(windows_[s].active.begin(), windows_[s].active.end(), 0u);
    }
  }

 private:
  // False for an embedding, of which a step uses one row for each token.
  static bool is_whole(const tierd_site_view& site) { return !tierd::used_in_part(site) && site.given == 0; }

  struct Window {
    uint32_t passes = 0;
    std::vector<uint32_t> active;  // [n] passes in which a cold unit has computed the neuron
  };
  using Load =
      std::pair<uint64_t, uint32_t>;  // neurons that were computed, and the place of their unit in cold_

  void take_homes(const std::string& name, uint32_t n, uint8_t* home) {
    const tierd_tensor_view homes = host_.tensor(name.c_str());
    if (homes.n_dims != 1 || homes.dims[0] != n)
      throw tierd::Failure(TIERD_E_INVALID, name + " should be " + std::to_string(n) + " values");
    for (uint32_t i = 0; i < n; ++i) {
      // NaN is in no range.
      if (!(homes.data[i] >= 0 && homes.data[i] < static_cast<float>(cold_.size())))
        throw tierd::Failure(TIERD_E_INVALID, name + " names a unit of more than the " +
                                                  std::to_string(cold_.size()) + " that there are");
      home[i] = static_cast<uint8_t>(cold_[static_cast<uint32_t>(homes.data[i])]);
    }
  }

  void remap(uint32_t s) {
    const tierd_site_view& site = host_.site(s);
    const uint32_t edition = site.editions[0];
    const std::vector<uint32_t>& active = windows_[s].active;
    std::vector<Load> loads;
    for (uint32_t c = 0; c < cold_.size(); ++c) loads.push_back({0, c});
    std::vector<std::vector<uint32_t>> of_unit(host_.n_units());  // active neurons
    for (uint32_t i = 0; i < site.n; ++i) {
      if (active[i] != 0) of_unit[host_.home(edition, i)].push_back(i);
    }
    for (Load& load : loads) {
      for (const uint32_t neuron : of_unit[cold_[load.second]]) load.first += active[neuron];
    }
    std::sort(loads.rbegin(), loads.rend());
    const uint64_t before = loads.front().first;
    for (size_t k = 0; k < loads.size() / 2; ++k)
      even_out(edition, active, loads[k], loads[loads.size() - 1 - k], of_unit[cold_[loads[k].second]]);
    tell_imbalance(loads, before);
  }

  // Moves neurons from the heavier unit of a pair to the lighter one.
  void even_out(uint32_t edition, const std::vector<uint32_t>& active, Load& heavy, Load& light,
                std::vector<uint32_t>& neurons) {
    std::stable_sort(neurons.begin(), neurons.end(),
                     [&](uint32_t a, uint32_t b) { return active[a] > active[b]; });
    std::vector<uint32_t> moves;
    for (const uint32_t neuron : neurons) {
      if (heavy.first <= light.first) break;
      if (active[neuron] >= heavy.first - light.first) continue;  // it would reverse the difference
      heavy.first -= active[neuron];
      light.first += active[neuron];
      moves.push_back(neuron);
    }
    if (moves.empty()) return;
    std::sort(moves.begin(), moves.end());
    host_.move(host_.unit(cold_[light.second]).memory, edition, moves.data(),
               static_cast<uint32_t>(moves.size()));
    moved_ += moves.size();
    host_.metric("asked to move", static_cast<double>(moved_));
  }

  // Reports the heaviest cold unit's load divided by the mean, averaged over all remappings: for the finished
  // window, with its homes before and after the remapping. The next window computes other neurons, so neither
  // is the future load of the units; the kernel counts that.
  void tell_imbalance(const std::vector<Load>& loads, uint64_t before) {
    uint64_t sum = 0, most = 0;
    for (const Load& load : loads) sum += load.first, most = std::max(most, load.first);
    if (sum == 0) return;
    const double mean = static_cast<double>(sum) / static_cast<double>(loads.size());
    ++remapped_;
    before_ += static_cast<double>(before) / mean;
    after_ += static_cast<double>(most) / mean;
    host_.metric("planned imbalance before", before_ / static_cast<double>(remapped_));
    host_.metric("planned imbalance after", after_ / static_cast<double>(remapped_));
  }

  tierd::Host host_;
  const uint32_t window_;
  const bool random_;
  const bool prompts_hot_;
  uint64_t lot_;
  uint32_t hot_;
  std::vector<uint32_t> cold_;   // units
  std::vector<Window> windows_;  // [sites]
  uint64_t computed_ = 0, computed_hot_ = 0, moved_ = 0, remapped_ = 0;
  double before_ = 0, after_ = 0;
};

}  // namespace

TIERD_PLUGIN(tierd::with_manual(
    tierd::with_params(
        tierd::balancer<HotCold>("hot-cold", "1.0",
                                 "hot neurons on one unit, cold ones dealt out and remapped (Hermes)"),
        kParams),
    kManual))
