#include "core/run/traffic.h"

#include <algorithm>
#include <numeric>

#include "core/base/align.h"

namespace tierd {
namespace {

// Appends the blocks that hold an extent, joined with those of the previous one.
void add_blocks(std::vector<FileRange>& ranges, const Extent& extent) {
  const uint64_t begin = extent.offset / kDirectIoAlignment * kDirectIoAlignment;
  const uint64_t end = align_up(extent.offset + extent.bytes, kDirectIoAlignment);
  if (!ranges.empty()) {
    FileRange& last = ranges.back();
    if (begin >= last.offset && begin <= last.offset + last.bytes) {
      last.bytes = std::max(last.bytes, end - last.offset);
      return;
    }
  }
  ranges.push_back({begin, end - begin});
}

// The transfers of a step, neuron by neuron: like Sources, if every cache keeps the neurons that it wanted at
// the start.
class Fetches {
 public:
  Fetches(const Topology& topology, const std::vector<std::vector<std::vector<uint32_t>>>& kept)
      : topology_(topology), kept_(kept) {}

  bool holds(MemoryId memory, EditionId edition, uint32_t neuron) const {
    if (memory == kStore) return true;
    return std::ranges::binary_search(kept_[memory - 1u][topology_.memory(memory).held_as(edition)], neuron);
  }
  // Calls each(link) for every link that the neuron crosses to a memory that does not hold it.
  template <class Each>
  void each_link(MemoryId memory, EditionId edition, uint32_t neuron, Each each) const {
    const auto leads_here = [&](size_t l, MemoryId from) {
      return topology_.links[l].to == memory && topology_.links[l].from == from;
    };
    for (size_t l = 0; l < topology_.links.size(); ++l) {
      if (topology_.links[l].to == memory && holds(topology_.links[l].from, edition, neuron)) return each(l);
    }
    const MemoryId over = topology_.memory(memory).over;
    for (size_t l = 0; l < topology_.links.size(); ++l) {
      if (!leads_here(l, over)) continue;
      each_link(over, edition, neuron, each);
      return each(l);
    }
  }

 private:
  const Topology& topology_;
  const std::vector<std::vector<std::vector<uint32_t>>>& kept_;  // [memories][editions]
};

}  // namespace

uint64_t PlannedTraffic::resident() const {
  return std::accumulate(resident_bytes.begin(), resident_bytes.end(), uint64_t{0});
}

PlannedTraffic plan_traffic(const RunPlan& plan, const Placement& placement, const KeptAtStart& kept) {
  const Topology& topology = plan.tiers.topology;
  const Manifest& manifest = plan.store.manifest();
  const ModelConfig& model = manifest.config;
  const Fetches fetches(topology, kept);
  PlannedTraffic traffic;
  traffic.resident_bytes.resize(topology.memories.size());
  traffic.link_bytes.resize(topology.links.size());
  for (SiteId s = 0; s < plan.model.sites.size(); ++s) {
    const Site& site = plan.model.sites[s];
    if (site.given()) continue;
    // The number of experts that a token uses is known, but not which ones.
    const bool in_part = site.chosen() || site.of_expert();
    const uint64_t used = in_part ? model.experts_per_token : 1;
    const uint64_t of = in_part ? model.n_experts : 1;
    const EditionId best = plan.model.sites.best(s);
    std::vector<bool> read(site.n, false);
    for (uint32_t i = 0; i < site.n; ++i) {
      const MemoryId memory = topology.units[placement.home(best, i)].memory;
      const auto bytes_in = [&](MemoryId in) -> uint64_t {
        const EditionId held = in == kStore ? best : topology.memory(in).held_as(best);
        return plan.model.sites.editions[held].bytes[i] * used / of;
      };
      const uint64_t bytes = bytes_in(memory);
      traffic.computed_bytes += bytes;
      if (fetches.holds(memory, best, i)) {
        traffic.resident_bytes[memory - 1u] += bytes;
        continue;
      }
      fetches.each_link(memory, best, i, [&](size_t link) {
        const uint64_t moved = bytes_in(topology.links[link].from);
        traffic.link_bytes[link] += moved;
        if (topology.links[link].from != kStore) return;
        traffic.streamed_bytes += moved;
        read[i] = true;
      });
    }
    const StoredSite& stored = manifest.sites[s];
    for (uint32_t e = 0; e < site.n * stored.pieces; ++e) {
      if (read[e % site.n])
        add_blocks(traffic.streamed, manifest.extents[stored.extent_of(e % site.n, e / site.n)]);
    }
  }
  return traffic;
}

}  // namespace tierd
