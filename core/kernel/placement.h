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

 private:
  uint32_t units_;
  std::vector<std::vector<uint8_t>> homes_;  // [sites][neurons]
};

}  // namespace tierd
