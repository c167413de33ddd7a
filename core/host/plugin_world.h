// What the instances of strategies that belong to one memory see of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/placement.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/layout/encoding.h"
#include "tierd/views.h"

namespace tierd {

// The tensors of one file that a configuration names for a plugin.
struct PluginTensors {
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;  // outermost first
    // A tensor of two dimensions is kept for `linear`: in the file's encoding, packed in row groups as the
    // kernels want them.
    Encoding encoding = Encoding::f32;
    std::unique_ptr<std::byte[], Free> packed;
    // All others: the values.
    std::vector<float> data;
  };
  std::vector<Tensor> tensors;
  uint64_t bytes = 0;  // what they occupy
};

// y [rows x dims[0]] = x [rows x dims[1]] times the transpose of a tensor of two dimensions, on the tier's
// threads.
using LinearFunction =
    std::function<void(const PluginTensors::Tensor&, const float* x, uint32_t rows, float* y)>;

class PluginWorld {
 public:
  // Whose neurons a memory keeps. `placement` NULL: everybody's.
  struct Home {
    const Placement* placement = nullptr;
    const Topology* topology = nullptr;
    MemoryId memory = 0;
  };
  // All that is referred to outlives the world.
  PluginWorld(const SiteTable& sites, uint64_t seed, LinearFunction linear, Home home);
  PluginWorld(const SiteTable& sites, uint64_t seed, LinearFunction linear)
      : PluginWorld(sites, seed, std::move(linear), Home()) {}
  PluginWorld(const PluginWorld&) = delete;
  PluginWorld& operator=(const PluginWorld&) = delete;

  const SiteTable& sites() const { return sites_; }
  const std::vector<const tierd_site_view*>& views() const { return views_; }  // [sites]
  const std::vector<const tierd_edition_view*>& edition_views() const {
    return edition_views_;
  }  // [editions]
  uint64_t seed() const { return seed_; }
  const LinearFunction& linear() const { return linear_; }

  // Where things are; set once the residency exists. Nothing is evictable before.
  void set_residency(const Residency* residency);
  const Residency* residency() const { return residency_; }
  bool evictable(uint32_t edition, uint32_t neuron) const {
    return edition < here_.size() && neuron < here_[edition].size() && here_[edition][neuron].evictable();
  }
  // Whether the neuron's home is a unit that the memory feeds.
  bool at_home(uint32_t edition, uint32_t neuron) const;

 private:
  const SiteTable& sites_;
  Home home_;
  uint64_t seed_;
  LinearFunction linear_;
  const Residency* residency_ = nullptr;
  std::vector<std::span<const Residency::Neuron>> here_;  // [editions] of it
  std::vector<tierd_site_view> all_;
  std::vector<const tierd_site_view*> views_;  // into all_
  std::vector<tierd_edition_view> all_editions_;
  std::vector<const tierd_edition_view*> edition_views_;  // into all_editions_
};

}  // namespace tierd
