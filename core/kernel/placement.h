// The home of each neuron: the unit in whose memory it is kept from the start and read ahead, until the
// balancer moves it. The balancer assigns the unit that computes a neuron anew in each step.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/kernel/memory.h"
#include "core/kernel/site.h"

namespace tierd {

class Placement {
 public:
  // Unit 0 is the home of every neuron.
  explicit Placement(uint32_t units = 1) : units_(units) {}

  uint32_t units() const { return units_; }
  // `homes`: [n] unit of each neuron of an edition.
  void place(EditionId edition, std::vector<uint8_t> homes) {
    if (edition >= homes_.size()) homes_.resize(edition + 1u);
    homes_[edition] = std::move(homes);
  }
  // Makes another unit the home of a neuron.
  void move(EditionId edition, uint32_t neuron, uint8_t unit) {
    if (edition < homes_.size() && !homes_[edition].empty()) homes_[edition][neuron] = unit;
  }
  const std::vector<uint8_t>& homes(EditionId edition) const { return homes_[edition]; }
  uint8_t home(EditionId edition, uint32_t neuron) const {
    return edition < homes_.size() && !homes_[edition].empty() ? homes_[edition][neuron] : 0;
  }
  // Returns [editions] the number of neurons of each edition held there whose home is a unit that the memory
  // feeds.
  std::vector<uint32_t> at_home(std::span<const Edition> editions, const Topology& topology,
                                MemoryId memory) const {
    std::vector<uint32_t> counts(editions.size(), 0);
    for (EditionId e = 0; e < editions.size(); ++e) {
      if (!topology.memory(memory).holds(e)) continue;
      for (uint32_t i = 0; i < editions[e].n; ++i) counts[e] += topology.feeds(memory, home(e, i)) ? 1 : 0;
    }
    return counts;
  }

 private:
  uint32_t units_;
  std::vector<std::vector<uint8_t>> homes_;  // [editions][neurons]
};

}  // namespace tierd
