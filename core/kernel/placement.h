// Which computing unit is the home of each neuron: where it is kept from the start and read ahead. Who
// computes it in a step is the balancer's to say each time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/kernel/site.h"

namespace tierd {

class Placement {
 public:
  // Everything is at home with unit 0.
  explicit Placement(uint32_t units = 1) : units_(units) {}

  uint32_t units() const { return units_; }
  // `homes`: [n] unit of each neuron of a canonical site.
  void place(SiteId site, std::vector<uint8_t> homes) {
    if (site >= homes_.size()) homes_.resize(site + 1u);
    homes_[site] = std::move(homes);
  }
  // Of a canonical site.
  uint8_t home(SiteId site, uint32_t neuron) const {
    return site < homes_.size() && !homes_[site].empty() ? homes_[site][neuron] : 0;
  }
  // [sites] How many neurons of each canonical site are at home with the unit; 0 of a site that shares
  // another's bytes.
  std::vector<uint32_t> at_home(const std::vector<Site>& sites, uint32_t unit) const {
    std::vector<uint32_t> counts(sites.size(), 0);
    for (SiteId s = 0; s < sites.size(); ++s) {
      if (sites[s].domain != s) continue;
      for (uint32_t i = 0; i < sites[s].n; ++i) counts[s] += home(s, i) == unit ? 1 : 0;
    }
    return counts;
  }

 private:
  uint32_t units_;
  std::vector<std::vector<uint8_t>> homes_;  // [sites][neurons]
};

}  // namespace tierd
