#include "core/kernel/pass/firing.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierd {

Firing::Firing(const Dispatcher& dispatcher, const SiteTable& sites, Strategies& strategies,
               const Topology& topology, const PassPlan& plan, Recording* recording)
    : dispatcher_(dispatcher),
      sites_(sites),
      strategies_(strategies),
      topology_(topology),
      plan_(plan),
      recording_(recording) {}

Status Firing::tell(SiteId site, const Pass& pass, bool knows_all) {
  if (recording_ != nullptr) {
    fired_ = recording_->fired(site);
  } else {
    count(site, pass.rows);
  }
  KernelObserver* const observer = dispatcher_.observer();
  if (observer != nullptr) observer->fired(site, fired_);
  tierd_fired_view view{};
  view.size = sizeof view;
  view.site = site;
  view.rows = pass.rows;
  view.n = static_cast<uint32_t>(fired_.neurons.size());
  view.known = knows_all ? TIERD_KNOWN_ALL : TIERD_KNOWN_COMPUTED;
  view.prompt = pass.bypass_caches ? 1 : 0;
  view.idx = fired_.neurons.data();
  view.count = fired_.counts.data();
  TIERD_TRY(strategies_.heat.call(&tierd_heat_1::fired, "fired", &view));
  TIERD_TRY(ask_heat(site));
  // Neurons that fired here may change the heat of the next site.
  const SiteId next = next_told(site);
  return next == site ? Status() : ask_heat(next);
}

void Firing::count(SiteId s, uint32_t rows) {
  const Site& site = sites_[s];
  const uint32_t stride = site.contribution.stride;
  counts_.assign(site.n, 0);
  for (UnitId u = 0; u < topology_.units.size(); ++u) {
    if (plan_.size(u) == 0) continue;
    const float* const lines =
        dispatcher_.values(topology_.units[u].agent, site.contribution.offset, uint64_t{rows} * stride);
    for (const PassPlan::Share& share : plan_.shares(u)) {
      for (uint32_t r = 0; r < rows; ++r) {
        const float* const line = lines + uint64_t{r} * stride;
        for (uint32_t i = 0; i < share.neurons->size(); ++i)
          counts_[(*share.neurons)[i]] += line[(*share.neurons)[i]] != 0 ? 1 : 0;
      }
    }
  }
  fired_.neurons.clear();
  fired_.counts.clear();
  for (uint32_t i = 0; i < site.n; ++i) {
    if (counts_[i] == 0) continue;
    fired_.neurons.push_back(i);
    fired_.counts.push_back(counts_[i]);
  }
}

Status Firing::ask_heat(SiteId site) {
  std::vector<uint8_t>& heat = strategies_.heat_of[site];
  heat.resize(sites_[site].n);
  TIERD_TRY(strategies_.heat.call(&tierd_heat_1::heat, "heat", site, heat.data()));
  const auto most = std::ranges::max_element(heat);
  if (most == heat.end() || *most <= TIERD_HOTTEST) return {};
  return strategies_.heat.fault("heat", fmt::format("value {}, expected at most {}", *most, TIERD_HOTTEST));
}

// Returns the next site in the order of the walk, which wraps around.
SiteId Firing::next_told(SiteId site) const {
  SiteId next = site;
  do next = (next + 1) % static_cast<SiteId>(sites_.size());
  while (next != site && !is_told(next));
  return next;
}

}  // namespace tierd
