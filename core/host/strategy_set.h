// Makes the strategies that a configuration names and keeps what they see of the world.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/strategies.h"
#include "tierd/plugin.h"

namespace tierd {

struct StrategyNames {
  std::string predictor = "dense";
  std::string quantizer = "plain";
  std::string cache = "pinned";
  std::string balancer = "single";
};

class StrategySet {
 public:
  // `plugins`: those to choose from. `sites` outlives the set. Errors: not_found with the known names.
  static Result<std::unique_ptr<StrategySet>> create(std::span<const tierd_plugin* const> plugins,
                                                     const StrategyNames& names,
                                                     const std::vector<Site>& sites, uint64_t seed);
  ~StrategySet();
  StrategySet(const StrategySet&) = delete;
  StrategySet& operator=(const StrategySet&) = delete;

  const Strategies& strategies() const { return strategies_; }

  // How the cache splits `bytes` among the sites: slots per site. Error: plugin_fault when the answer does
  // not fit.
  Result<std::vector<uint32_t>> share(uint64_t bytes);

  // What `evictable` answers from; set once the residency exists.
  void set_residency(const Residency* residency) { residency_ = residency; }

 private:
  StrategySet() = default;
  static int evictable(void* context, uint32_t site, uint32_t neuron);
  Result<const void*> make(std::span<const tierd_plugin* const> plugins, const char* kind,
                           const std::string& name, const char* extension, void*& self);

  struct Made {
    const tierd_plugin* plugin;
    void* self;
  };
  const std::vector<Site>* sites_ = nullptr;
  const Residency* residency_ = nullptr;
  std::vector<tierd_encoding_view> encodings_;
  std::vector<tierd_site_view> views_;
  tierd_host host_{};
  std::vector<Made> made_;
  Strategies strategies_;
};

}  // namespace tierd
