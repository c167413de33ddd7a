#include "core/kernel/pass/idle_sources.h"

#include <algorithm>
#include <utility>

#include "core/kernel/plugin_answer.h"

namespace tierd {

IdleSources::IdleSources(const SiteTable& sites, Strategies& strategies, const Topology& topology,
                         const PassPlan& plan, std::deque<Supply>& supplies)
    : sites_(sites),
      strategies_(strategies),
      topology_(topology),
      plan_(plan),
      supplies_(supplies),
      sources_(topology.memories.size()),
      idle_(topology.memories.size(), 0) {
  for (const Link& link : topology.links) {
    const uint16_t unit = link.from == kStore ? kNoUnit : topology.unit_of(link.from);
    if (unit != kNoUnit) sources_[link.to - 1u].push_back(unit);
  }
}

Status IdleSources::use(SiteId site, uint64_t now_ns) {
  begin_ns_.reset();
  for (size_t m = 0; m < idle_.size(); ++m) idle_[m] = are_idle(m) ? 1 : 0;
  if (std::ranges::count(idle_, 1) == 0) return {};
  begin_ns_ = now_ns;
  TIERD_TRY(ask_caches(site));
  return ask_balancer(site);
}

// A unit may run segments in a pass in which it computes no neuron.
void IdleSources::end(uint64_t now_ns, std::span<const UnitPass> units) {
  if (!begin_ns_) return;
  std::vector<uint8_t> is_source(units.size(), 0);
  for (size_t m = 0; m < idle_.size(); ++m) {
    for (const UnitId unit : sources_[m]) is_source[unit] |= idle_[m];
  }
  std::vector<IdleTime::Interval> runs;
  for (size_t u = 0; u < units.size(); ++u) {
    const auto& of_unit = units[u].busy.intervals();
    if (is_source[u] != 0) runs.insert(runs.end(), of_unit.begin(), of_unit.end());
  }
  time_.add_window({*begin_ns_, now_ns}, std::move(runs));
  begin_ns_.reset();
  for (Supply& supply : supplies_) time_.add_moves(supply.spare_time().take_moves());
}

IdleCounters IdleSources::counters() const {
  IdleTime time = time_;
  for (const Supply& supply : supplies_) time.add_moves(supply.spare_time().moves());
  return time.counters();
}

bool IdleSources::are_idle(size_t memory) const {
  const std::vector<UnitId>& sources = sources_[memory];
  return !sources.empty() && std::ranges::all_of(sources, [&](UnitId unit) { return plan_.size(unit) == 0; });
}

Status IdleSources::ask_caches(SiteId site) {
  for (size_t m = 0; m < idle_.size(); ++m) {
    if (idle_[m] == 0) continue;
    TIERD_ASSIGN(std::vector<WantedNeurons> wanted,
                 wanted_meanwhile(strategies_.caches[m], site, sites_.editions, topology_.memories[m]));
    for (WantedNeurons& some : wanted) supplies_[m].spare_time().ask(std::move(some), false);
  }
  return {};
}

// Ignores wishes for memories whose sources are not idle: the balancer is asked again in the next such pass.
Status IdleSources::ask_balancer(SiteId site) {
  TIERD_ASSIGN(std::vector<WantedHome> homes,
               wanted_homes(strategies_.balancer, site, sites_.editions, topology_));
  for (auto& [memory, wanted] : homes) {
    if (idle_[memory - 1u] != 0) supplies_[memory - 1u].spare_time().ask(std::move(wanted), true);
  }
  return {};
}

}  // namespace tierd
