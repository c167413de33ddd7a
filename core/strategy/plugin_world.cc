#include "core/strategy/plugin_world.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/strategy/site_view.h"

namespace tierd {

PluginWorld::PluginWorld(const SiteTable& sites, uint64_t seed, LinearFunction linear, Machine machine)
    : sites_(sites),
      machine_(std::move(machine)),
      seed_(seed),
      linear_(std::move(linear)),
      all_(sites.size()),
      all_editions_(sites.editions.size()) {
  for (SiteId s = 0; s < sites.size(); ++s) {
    std::vector<EditionId>& editions = editions_.emplace_back(sites[s].editions);
    if (machine_.memory != kStore) {
      for (EditionId& e : editions) e = machine_.topology.memory(machine_.memory).held_as(e);
      editions.erase(std::unique(editions.begin(), editions.end()), editions.end());
    }
    all_[s] = site_view(s, sites[s], editions);
    views_.push_back(&all_[s]);
  }
  for (EditionId e = 0; e < sites.editions.size(); ++e) {
    all_editions_[e] = edition_view(e, sites.editions[e]);
    const bool seen = machine_.memory != kStore ? machine_.topology.memory(machine_.memory).holds(e)
                                                : sites.wanted(sites.editions[e].owner, e) == e;
    if (!seen) all_editions_[e].n = 0;
    edition_views_.push_back(&all_editions_[e]);
  }
  const Topology& topology = machine_.topology;
  for (size_t m = 0; m < topology.memories.size(); ++m) {
    const auto id = static_cast<MemoryId>(m + 1);
    const uint16_t unit = topology.unit_of(id);
    all_memories_.push_back(
        {sizeof(tierd_memory_view), id, topology.memories[m].over,
         unit == Topology::kNoUnit ? TIERD_NO_UNIT : unit, topology.memories[m].name.c_str(), 0,
         uint64_t{topology.memories[m].staging_blocks} * topology.memories[m].block_bytes, 0});
  }
  for (const tierd_memory_view& view : all_memories_) memory_views_.push_back(&view);
  for (uint32_t u = 0; u < topology.units.size(); ++u)
    all_units_.push_back({sizeof(tierd_unit_view), u, topology.units[u].memory});
  for (const tierd_unit_view& view : all_units_) unit_views_.push_back(&view);
}

void PluginWorld::set_memory_bytes(std::span<const uint64_t> bytes) {
  TIERD_CHECK(bytes.size() == all_memories_.size());
  for (size_t m = 0; m < bytes.size(); ++m) all_memories_[m].bytes = bytes[m];
}

void PluginWorld::set_residencies(const std::deque<Residency>* residencies) {
  residencies_ = residencies;
  here_.clear();
  if (residencies == nullptr) return;
  for (EditionId e = 0; e < sites_.editions.size(); ++e) here_.push_back(residency()->neurons(e));
}

const Residency* PluginWorld::residency() const {
  return residencies_ == nullptr ? nullptr : &(*residencies_)[std::max<MemoryId>(machine_.memory, 1) - 1u];
}

uint64_t PluginWorld::holders(uint32_t edition, uint32_t neuron) const {
  uint64_t bits = 0;
  if (residencies_ == nullptr || edition >= sites_.editions.size() || neuron >= sites_.editions[edition].n)
    return bits;
  for (size_t m = 0; m < residencies_->size(); ++m) {
    const EditionId held = machine_.topology.memories[m].held_as(edition);
    bits |= uint64_t{(*residencies_)[m].valid(held, neuron)} << (m + 1);
  }
  return bits;
}

void PluginWorld::resident(EditionId edition, std::span<uint8_t> here) const {
  std::ranges::fill(here, 0);
  if (residencies_ == nullptr) return;
  for (size_t m = 0; m < residencies_->size(); ++m) {
    const auto neurons = (*residencies_)[m].neurons(machine_.topology.memories[m].held_as(edition));
    for (uint32_t i = 0; i < here.size(); ++i)
      here[i] |= neurons[i].state != Residency::State::absent ? 1 : 0;
  }
}

EditionId PluginWorld::held(uint32_t memory, uint32_t edition) const {
  const bool known = memory != kStore && memory <= all_memories_.size() && edition < sites_.editions.size();
  return known ? machine_.topology.memories[memory - 1u].held_as(edition) : kNoEdition;
}

uint32_t PluginWorld::home(uint32_t edition, uint32_t neuron) const {
  if (edition >= sites_.editions.size() || neuron >= sites_.editions[edition].n) return TIERD_NO_UNIT;
  return machine_.placement == nullptr ? 0 : machine_.placement->home(edition, neuron);
}

bool PluginWorld::at_home(uint32_t edition, uint32_t neuron) const {
  const uint32_t unit = home(edition, neuron);
  if (unit == TIERD_NO_UNIT) return false;
  return machine_.topology.feeds(std::max<MemoryId>(machine_.memory, 1), static_cast<uint16_t>(unit));
}

}  // namespace tierd
