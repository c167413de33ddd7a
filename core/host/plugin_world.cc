#include "core/host/plugin_world.h"

#include <utility>

namespace tierd {

PluginWorld::PluginWorld(const std::vector<Site>& sites, uint64_t seed, LinearFunction linear)
    : sites_(sites), seed_(seed), linear_(std::move(linear)), encodings_(sites.size()) {
  for (SiteId s = 0; s < sites.size(); ++s) {
    const Site& site = sites[s];
    encodings_[s] = {site.encoding, 0, site.slot_bytes};
    tierd_site_view view{};
    view.size = sizeof view;
    view.site = s;
    view.parent = TIERD_NO_SITE;
    view.alias_of = site.domain == s ? TIERD_NO_SITE : site.domain;
    view.name = site.name.c_str();
    view.layer = site.layer;
    view.op_group = site.op_group;
    view.axis = TIERD_AXIS_ROW;
    view.merge = TIERD_MERGE_CONCAT;
    view.given = site.given ? 1 : 0;
    view.n = site.n;
    view.n_in = site.n_in;
    view.n_out = site.n_out;
    view.n_enc = 1;
    view.enc = &encodings_[s];
    views_.push_back(view);
  }
}

bool PluginWorld::evictable(uint32_t site, uint32_t neuron) const {
  if (residency_ == nullptr || site >= sites_.size() || neuron >= sites_[site].n) return false;
  return residency_->valid(site, neuron) && !residency_->pinned(site, neuron);
}

}  // namespace tierd
