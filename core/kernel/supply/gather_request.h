// The neurons that are wanted in a memory, and for which purpose.
#pragma once

#include <cstdint>
#include <variant>

#include "core/agent/message.h"
#include "core/kernel/active_set.h"
#include "core/kernel/memory.h"
#include "core/kernel/site.h"

namespace tierd {

// Neurons are fetched for a pass that computes from the memory itself, or for another memory, which lies over
// this one and fetches from it.
struct Purpose {
  SiteId site = kNoSiteId;
  uint32_t step = 0;
  MemoryId client = 0;  // the memory itself, or the other one
  bool operator==(const Purpose&) const = default;
};

// A request to gather neurons in a memory.
struct GatherRequest {
  static constexpr uint16_t kNoAgent = 0;

  Purpose purpose;
  EditionId edition = kNoEdition;
  // A set that stays as it is until the gathering has ended, or one that the gathering keeps.
  std::variant<const ActiveSet*, ActiveSet> wanted = nullptr;
  // The agent that computes from the memory. Neurons that this agent moves into the memory are handed out
  // while they are on their way.
  uint16_t agent = kNoAgent;
  Priority priority = Priority::demand;
  bool bypass = false;  // no cache is asked: missing neurons pass through staging
  // The neurons of `wanted` that are used; the others are only measured, and pass through staging. NULL: all
  // are used.
  const ActiveSet* used = nullptr;

  const ActiveSet& set() const {
    const ActiveSet* const* const outside = std::get_if<const ActiveSet*>(&wanted);
    return outside != nullptr ? **outside : *std::get_if<ActiveSet>(&wanted);
  }
  bool uses(uint32_t neuron) const { return used == nullptr || used->contains(neuron); }
};

}  // namespace tierd
