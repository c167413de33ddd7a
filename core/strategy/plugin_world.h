// The view of a run for the instances of strategies that belong to one memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/placement.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/model/layout/encoding.h"
#include "tierd/views.h"

namespace tierd {

// The tensors of a file that a configuration names for a plugin.
struct PluginTensors {
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;  // outermost first
    // A tensor of two dimensions, for `linear`: in the file's encoding, packed in row groups for the kernels.
    Encoding encoding = Encoding::f32;
    std::unique_ptr<std::byte[], Free> packed;
    // Values of a tensor of another number of dimensions.
    std::vector<float> data;
  };
  std::vector<Tensor> tensors;
  uint64_t bytes = 0;  // memory of all tensors
};

// Computes y [rows x dims[0]] = x [rows x dims[1]] times the transpose of a tensor of two dimensions, on the
// tier's threads.
using LinearFunction =
    std::function<void(const PluginTensors::Tensor&, const float* x, uint32_t rows, float* y)>;

class PluginWorld {
 public:
  // The memories, and the homes of neurons. `placement` NULL: the first unit is the home of all.
  struct Machine {
    Topology topology = Topology::over_store(1);
    const Placement* placement = nullptr;
    MemoryId memory = kStore;  // of the cache that sees the world; the store: not for a cache
  };
  // Everything referred to outlives the world.
  PluginWorld(const SiteTable& sites, uint64_t seed, LinearFunction linear, Machine machine);
  PluginWorld(const SiteTable& sites, uint64_t seed, LinearFunction linear)
      : PluginWorld(sites, seed, std::move(linear), Machine()) {}
  PluginWorld(const PluginWorld&) = delete;
  PluginWorld& operator=(const PluginWorld&) = delete;

  const SiteTable& sites() const { return sites_; }
  const std::vector<const tierd_site_view*>& views() const { return views_; }  // [sites]
  const std::vector<const tierd_edition_view*>& edition_views() const {
    return edition_views_;
  }  // [editions]
  uint64_t seed() const { return seed_; }
  const LinearFunction& linear() const { return linear_; }

  const std::vector<const tierd_memory_view*>& memory_views() const { return memory_views_; }
  const std::vector<const tierd_unit_view*>& unit_views() const { return unit_views_; }
  MemoryId memory() const { return machine_.memory; }
  // Sets the bytes that each memory's cache may share out, [memories]: instances see them from now on.
  void set_memory_bytes(std::span<const uint64_t> bytes);
  // Sets the cost of a read of the store into `memory` beyond the bytes that it fetches.
  void set_gap_bytes(MemoryId memory, uint64_t bytes) { all_memories_[memory - 1u].gap_bytes = bytes; }

  // Sets the residencies, [memories], once they exist. Before, no neuron is resident or evictable.
  void set_residencies(const std::deque<Residency>* residencies);
  // Returns the residency of the cache's memory, or the first memory's if the world belongs to no cache.
  const Residency* residency() const;
  uint64_t holders(uint32_t edition, uint32_t neuron) const;
  bool evictable(uint32_t edition, uint32_t neuron) const {
    return edition < here_.size() && neuron < here_[edition].size() && here_[edition][neuron].evictable();
  }
  // [sites][n] See Strategies::heat_of; outlives the world.
  void set_heat(const std::vector<std::vector<uint8_t>>* heat) { heat_ = heat; }
  // Returns the heat of a site's neurons; NULL: not known.
  const uint8_t* heat(uint32_t site) const {
    const bool said = heat_ != nullptr && site < heat_->size() && !(*heat_)[site].empty();
    return said ? (*heat_)[site].data() : nullptr;
  }
  // See Memory::held; kNoEdition if there is no such memory or edition.
  EditionId held(uint32_t memory, uint32_t edition) const;
  // Sets `here` [n of the edition] to 1 for neurons that are in a memory or being fetched, else to 0.
  void resident(EditionId edition, std::span<uint8_t> here) const;
  // Returns the home, or TIERD_NO_UNIT for a neuron that does not exist.
  uint32_t home(uint32_t edition, uint32_t neuron) const;
  // Returns whether the home is a unit that the cache's memory feeds.
  bool at_home(uint32_t edition, uint32_t neuron) const;

 private:
  const SiteTable& sites_;
  const Machine machine_;
  uint64_t seed_;
  LinearFunction linear_;
  const std::deque<Residency>* residencies_ = nullptr;
  const std::vector<std::vector<uint8_t>>* heat_ = nullptr;
  std::vector<std::span<const Residency::Neuron>> here_;  // [editions] of residency()
  // [sites] their editions as the cache's memory holds them.
  std::vector<std::vector<EditionId>> editions_;
  std::vector<tierd_site_view> all_;
  std::vector<const tierd_site_view*> views_;  // into all_
  std::vector<tierd_edition_view> all_editions_;
  std::vector<const tierd_edition_view*> edition_views_;  // into all_editions_
  std::vector<tierd_memory_view> all_memories_;
  std::vector<const tierd_memory_view*> memory_views_;  // into all_memories_
  std::vector<tierd_unit_view> all_units_;
  std::vector<const tierd_unit_view*> unit_views_;  // into all_units_
};

}  // namespace tierd
