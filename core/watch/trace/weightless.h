// The kernel of a recorded run, built again around agents that move no bytes.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "core/agent/pool.h"
#include "core/base/result.h"
#include "core/kernel/pass/scheduler.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/residency.h"
#include "core/strategy/strategy_set.h"
#include "core/watch/trace/header.h"

namespace tierd {

// Loads the plugin that a trace names.
using ChooseStrategy = std::function<Result<StrategyChoice>(std::string_view kind, const StrategyConfig&)>;

// Loads the strategies that the header names.
Result<StrategyChoices> choose_recorded(const TraceHeader& header, const ChooseStrategy& choose);

class WeightlessKernel {
 public:
  // `agents`: one for each of the header's, in order. `parts`: bytes that each memory's cache may share out.
  // Everything outlives the kernel. `recording` gives the results that need weights. Errors: plugin_fault;
  // no_space, for more neurons than this process has memory for.
  static Result<std::unique_ptr<WeightlessKernel>> create(const TraceHeader& header,
                                                          const StrategyChoices& strategies,
                                                          std::vector<uint64_t> parts, Clock& clock,
                                                          std::vector<Agent*> agents, Recording& recording);

  Dispatcher& dispatcher() { return dispatcher_; }
  Scheduler& scheduler() { return *scheduler_; }
  StrategySet& strategies() { return *strategies_; }
  const std::vector<std::vector<uint32_t>>& slots() const { return slots_; }
  // Returns the bytes that the caches may share out, [memories]; a swapped cache needs them.
  const std::vector<uint64_t>& parts() const { return parts_; }
  // Changes the parts, and reports them to the strategies.
  void set_parts(const ArenaParts& parts);

 private:
  WeightlessKernel(const TraceHeader& header, Clock& clock);

  PoolTable pools_;
  Waiter waiter_;
  Dispatcher dispatcher_;
  std::unique_ptr<StrategySet> strategies_;
  std::vector<std::vector<uint32_t>> slots_;  // [memories][editions]
  std::vector<uint64_t> parts_;               // [memories]
  std::deque<Residency> residencies_;         // [memories]
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace tierd
