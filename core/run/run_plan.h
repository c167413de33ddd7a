// What a run will be, before any memory is taken or anything is written: the store is open or planned, memory
// is divided, plugins and agents are loaded and checked.
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
  bool shorten = false;  // halve a context that was not given until it fits
  uint32_t shortest_context = 256;
  bool fit = false;         // the same, and raise a budget that is too small to the least that would do
  bool force = false;       // take capacities that are more than there is
  bool quiet = false;       // no progress
  uint32_t logit_rows = 1;  // rows of a batch that may ask for logits
  // The room of measured steps lies beside the budgets, so that as much is resident as in a run that measures
  // none. What a strategy measures for itself stays within them.
  bool measures_beside = false;
  // How the store's data file is opened; tests put a device that misbehaves in its place. Empty: as the agent
  // does.
  OpenDevice open_device = {};
  // Tests put an agent that fails before one of a tier with memories, by its number.
  std::function<void(MadeAgent& agent, uint16_t number)> wrap_agent = {};
  Recording* recording = nullptr;  // of a run whose activity is played (run.execute = "trace")
  // Where another thread sees which plugin is being called; it outlives the run.
  PluginCalls* running_plugins = nullptr;
  // It hears of everything until the run is destroyed. A run that has one writes neither trace nor timeline.
  KernelObserver* observer = nullptr;
  // The plan of a store that compresses and is not made, with the sizes that were counted
  // (with_counted_store).
  std::shared_ptr<const Manifest> counted = {};
  // The run is played on this machine in virtual time, whatever `run.clock` says: nothing is read, computed
  // or recorded, and the store may be planned. Steps can be made where Runtime::plays says so.
  std::optional<MachineDescription> play_on = {};
};

struct RunPlan {
  Config config;  // capacities that were chosen stand in it
  // What was changed so that it fits, a line each: "run.context: 1024 positions instead of 4096, …".
  std::vector<std::string> fitted;
  Store store;
  std::shared_ptr<const NeuronCodec> codec;  // that expands what the store has; NULL: it has none by a codec
  std::shared_ptr<const TensorSource> source;  // what the store is to be made of; none where it stands
  TierTable tiers;
  MemoryPlan memory;  // its tiers are tiers.memories
  ModelPlan model;
  StrategyChoices strategies;
  StrategyChoices fallbacks;  // without a plugin where none is named
  // None: nobody has named a description, and the configurations' folder has none (plan_power).
  std::optional<PowerDescription> power;
};
// How the store of a configuration is laid out; the codec that it names is loaded. Names in it are known ones
// but for that, of which choose_compression has the errors.
Result<WriteOptions> store_options(const Config& config, const RuntimeOptions& options);
// The store that the configuration names, opened or planned, and the memory divided. Nothing is written.
// Errors name file or key.
Result<RunPlan> plan_run(const Config& config, const RuntimeOptions& options);

}  // namespace tierd
