#include "core/host/plugin_world.h"

#include <utility>

#include "core/kernel/site_view.h"

namespace tierd {

PluginWorld::PluginWorld(const std::vector<Site>& sites, uint64_t seed, LinearFunction linear,
                         const Placement* placement, uint8_t unit)
    : sites_(sites),
      placement_(placement),
      unit_(unit),
      seed_(seed),
      linear_(std::move(linear)),
      encodings_(sites.size()),
      all_(sites.size()) {
  for (SiteId s = 0; s < sites.size(); ++s) {
    encodings_[s] = encoding_view(sites[s]);
    all_[s] = site_view(s, sites[s], encodings_[s]);
    views_.push_back(&all_[s]);
  }
}

void PluginWorld::set_residency(const Residency* residency) {
  residency_ = residency;
  here_.clear();
  if (residency == nullptr) return;
  for (uint32_t site = 0; site < sites_.size(); ++site) here_.push_back(residency->neurons(site));
}

bool PluginWorld::at_home(uint32_t site, uint32_t neuron) const {
  return site < sites_.size() && neuron < sites_[site].n &&
         (placement_ == nullptr || placement_->home(sites_[site].domain, neuron) == unit_);
}

}  // namespace tierd
