// Computes where the neurons of transfers are in their memory, in units of kPlaceUnit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/kernel/memory.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/supply/transfer.h"
#include "core/message/message.h"

namespace tierd {

class TransferPlaces {
 public:
  // Everything referred to outlives this.
  TransferPlaces(const Memory& memory, const SiteTable& sites, const Residency& residency)
      : memory_(memory), sites_(sites), residency_(residency) {
    for (EditionId e = 0; e < sites.editions.size(); ++e)
      arena_.push_back(slots(memory.arena_offset[e], sites.editions[e].slot_bytes));
  }

  // Returns the place of an arena slot of an edition.
  uint32_t in_arena(EditionId edition, uint32_t slot) const { return arena_[edition].at(slot); }
  // Calls each(neuron, place) for the neurons of a transfer, in their order.
  template <class Each>
  void each(const Transfer& transfer, Each each) const {
    if (const BlockTransfer* const into = in_block(transfer); into != nullptr) {
      const Slots block = slots(memory_.staging_offset + uint64_t{into->block} * memory_.block_bytes,
                                sites_.editions[transfer.edition].slot_bytes);
      for (uint32_t i = 0; i < transfer.neurons.size(); ++i)
        each(transfer.neurons[i], block.at(into->first + i));
      return;
    }
    const std::span<const Residency::Neuron> all = residency_.neurons(transfer.edition);
    const Slots arena = arena_[transfer.edition];
    for (const uint32_t neuron : transfer.neurons) each(neuron, arena.at(all[neuron].slot));
  }

 private:
  // Equal slots, one behind the other.
  struct Slots {
    uint32_t first;
    uint32_t stride;
    uint32_t at(uint32_t slot) const { return first + slot * stride; }
  };
  static Slots slots(uint64_t offset, uint32_t slot_bytes) {
    return {static_cast<uint32_t>(offset / kPlaceUnit), static_cast<uint32_t>(slot_bytes / kPlaceUnit)};
  }

  const Memory& memory_;
  const SiteTable& sites_;
  const Residency& residency_;
  std::vector<Slots> arena_;  // [editions]
};

}  // namespace tierd
