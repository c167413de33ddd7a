#include "core/host/plugin_world.h"

#include <utility>

#include "core/kernel/site_view.h"

namespace tierd {

PluginWorld::PluginWorld(const SiteTable& sites, uint64_t seed, LinearFunction linear, Home home)
    : sites_(sites),
      home_(home),
      seed_(seed),
      linear_(std::move(linear)),
      all_(sites.size()),
      all_editions_(sites.editions.size()) {
  for (SiteId s = 0; s < sites.size(); ++s) {
    all_[s] = site_view(s, sites[s]);
    views_.push_back(&all_[s]);
  }
  for (EditionId e = 0; e < sites.editions.size(); ++e) {
    all_editions_[e] = edition_view(e, sites.editions[e]);
    edition_views_.push_back(&all_editions_[e]);
  }
}

void PluginWorld::set_residency(const Residency* residency) {
  residency_ = residency;
  here_.clear();
  if (residency == nullptr) return;
  for (EditionId e = 0; e < sites_.editions.size(); ++e) here_.push_back(residency->neurons(e));
}

bool PluginWorld::at_home(uint32_t edition, uint32_t neuron) const {
  return edition < sites_.editions.size() && neuron < sites_.editions[edition].n &&
         (home_.placement == nullptr ||
          home_.topology->feeds(home_.memory, home_.placement->home(edition, neuron)));
}

}  // namespace tierd
