// What a run will be, before any memory is taken: the store is open, memory is divided, plugins and agents
// are loaded and checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/block_device.h"
#include "core/base/result.h"
#include "core/config/config.h"
#include "core/engine/memory_plan.h"
#include "core/engine/model_plan.h"
#include "core/kernel/observer.h"
#include "core/kernel/pass/recording.h"
#include "core/run/strategy_choices.h"
#include "core/run/tiers.h"
#include "core/store/store.h"

namespace tierd {

struct RuntimeOptions {
  bool shorten = false;     // halve a context that was not given until it fits
  bool fit = false;         // the same, and raise a budget that is too small to the least that would do
  bool force = false;       // take capacities that are more than there is
  bool quiet = false;       // no progress
  uint32_t logit_rows = 1;  // rows of a batch that may ask for logits
  // How the store's data file is opened; tests put a device that misbehaves in its place. Empty: as the agent
  // does.
  OpenDevice open_device = {};
  Recording* recording = nullptr;  // of a run whose activity is played (run.execute = "trace")
  // It hears of everything until the run is destroyed. A run that has one writes neither trace nor timeline.
  KernelObserver* observer = nullptr;
};

struct RunPlan {
  Config config;  // capacities that were chosen stand in it
  // What was changed so that it fits, a line each: "run.context: 1024 positions instead of 4096, …".
  std::vector<std::string> fitted;
  Store store;
  TierTable tiers;
  MemoryPlan memory;  // its tiers are tiers.memories
  ModelPlan model;
  StrategyChoices strategies;
  StrategyChoices fallbacks;  // without a plugin where none is named
};
// Opens (or makes) the store that the configuration names. Errors name file or key.
Result<Store> open_store(const Config& config, const RuntimeOptions& options);
// The same, and divides the memory.
Result<RunPlan> plan_run(const Config& config, const RuntimeOptions& options);

}  // namespace tierd
