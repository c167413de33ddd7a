// Counts the neurons that each unit computes, pass by pass, and how evenly the units of a tier are loaded.
// Counts completed runs, not the balancer's plans.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/kernel/memory.h"
#include "core/kernel/pass/unit_pass.h"
#include "core/kernel/site.h"
#include "core/kernel/unit_load.h"

namespace tierd {

class UnitLoads {
 public:
  // `window`: the number of consecutive passes of a site that form a window; at least 1.
  UnitLoads(size_t sites, const Topology& topology, uint32_t window);

  // Adds a pass that is over. `units` [units] of the topology.
  void add(SiteId site, std::span<UnitPass> units);

  const std::vector<SiteLoad>& sites() const { return loads_; }
  uint32_t window() const { return window_; }
  // Returns the number of the unit's tier, from 0, in the order of the units. Units belong to one tier if
  // their memories have the same name.
  uint32_t tier_of(UnitId unit) const { return tier_of_[unit]; }

 private:
  struct Window {
    uint32_t passes = 0;
    std::vector<uint64_t> neurons;  // [units]
  };
  void end_window(SiteLoad& load, const Window& window) const;

  const uint32_t window_;
  uint32_t tiers_ = 0;
  std::vector<uint32_t> tier_of_;  // [units]
  std::vector<SiteLoad> loads_;    // [sites]
  std::vector<Window> windows_;    // [sites] the current window
};

}  // namespace tierd
