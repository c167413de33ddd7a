// The plan of a run, before any memory is allocated or anything is written: the store is open or planned,
// memory is divided, plugins and agents are loaded and checked.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/agent_entry.h"
#include "core/base/block_device.h"
#include "core/base/result.h"
#include "core/config/config.h"
#include "core/engine/memory_plan.h"
#include "core/engine/model_plan.h"
#include "core/kernel/observer.h"
#include "core/kernel/pass/recording.h"
#include "core/kernel/plugin_calls.h"
#include "core/model/layout/neuron_codec.h"
#include "core/model/tensor_source.h"
#include "core/run/strategy_choices.h"
#include "core/run/tiers.h"
#include "core/store/store.h"
#include "core/store/write_options.h"
#include "core/time/machine.h"
#include "core/watch/energy/power_description.h"

namespace tierd {

struct RuntimeOptions {
  bool shorten = false;  // halve a context that was not given until everything fits
  uint32_t shortest_context = 256;
  bool fit = false;         // as `shorten`, and raise a budget that is too small to the least sufficient one
  bool force = false;       // accept capacities beyond the available memory
  bool quiet = false;       // no progress
  uint32_t logit_rows = 1;  // rows of a batch whose logits may be wanted
  // The room of measured steps is added to the budgets, so that as much is resident as in a run without
  // measuring. Room for a strategy's own measurements stays within them.
  bool measures_beside = false;
  // Opens the store's data file; tests use a device that misbehaves. Empty: the agent opens it.
  OpenDevice open_device = {};
  // Wraps the agents of tiers with memories, given with their numbers; tests use failing agents.
  std::function<void(MadeAgent& agent, uint16_t number)> wrap_agent = {};
  Recording* recording = nullptr;  // for a run whose activity is played (run.execute = "trace")
  // Shows another thread the plugin that is being called; outlives the run.
  PluginCalls* running_plugins = nullptr;
  // Receives every event until the run is destroyed. The run then writes neither trace nor timeline.
  KernelObserver* observer = nullptr;
  // The plan of a store that compresses and is not made, with the counted sizes (with_counted_store).
  std::shared_ptr<const Manifest> counted = {};
  // The run is played on this machine in virtual time, whatever `run.clock`: nothing is read, computed or
  // recorded, and the store may be planned. Steps are possible if Runtime::plays returns ok.
  std::optional<MachineDescription> play_on = {};
};

struct RunPlan {
  Config config;  // contains the chosen capacities
  // The values that were changed to fit, a line each: "run.context: 1024 positions instead of 4096, …".
  std::vector<std::string> fitted;
  Store store;
  std::shared_ptr<const NeuronCodec> codec;    // expands the store's neurons; NULL: the store uses none
  std::shared_ptr<const TensorSource> source;  // to make the store of; NULL if the store exists
  TierTable tiers;
  MemoryPlan memory;  // [tiers.memories]
  ModelPlan model;
  StrategyChoices strategies;
  StrategyChoices fallbacks;  // without a plugin if none is named
  // None: no description is named, and the configurations' folder has none (plan_power).
  std::optional<PowerDescription> power;
};
// Returns how the store of a configuration is laid out, with its codec loaded. Names in the configuration are
// valid except the codec's, for which choose_compression reports errors.
Result<WriteOptions> store_options(const Config& config, const RuntimeOptions& options);
// Opens or plans the store that the configuration names, and divides memory. Errors name file or key.
Result<RunPlan> plan_run(const Config& config, const RuntimeOptions& options);

}  // namespace tierd
