// A kernel with strategies whose agents complete at once and move no bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/config/config.h"
#include "core/kernel/pass/scheduler.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/residency.h"
#include "core/run/strategy_choices.h"
#include "core/strategy/strategy_set.h"
#include "core/time/modelled_agent.h"
#include "tiers/null/null_agent.h"

namespace tierd {

class BareKernel {
 public:
  struct Options {
    Config config = {};  // only the strategies' part is used
    uint64_t arena_bytes = 0;
    uint32_t block_bytes = 0;   // of a staging block
    bool virtual_time = false;  // each message takes 1 us of it
  };

  BareKernel(SiteTable sites, const Options& options)
      : sites_(std::move(sites)), dispatcher_(pools_, clock(options), waiter_, dispatch(sites_)) {
    auto made = StrategySet::create(*read_tensors(*choose_strategies(options.config)), sites_, {});
    TIERD_CHECK(made.ok());
    strategies_ = std::move(*made);
    auto slots = strategies_->share({options.arena_bytes});
    TIERD_CHECK(slots.ok());
    residencies_.emplace_back(sites_.editions, slots->front());
    strategies_->set_residencies(residencies_);

    Scheduler::Options scheduling;
    Topology& topology = scheduling.topology;
    Memory& memory = topology.memories.emplace_back();
    const auto add = [&](NullAgent& agent, ModelledAgent& modelled) {
      return dispatcher_.add_agent(options.virtual_time ? static_cast<Agent&>(modelled) : agent);
    };
    memory.agent = add(dram_, modelled_dram_);
    topology.units = {{.agent = memory.agent, .memory = 1}};
    topology.links = {{.from = kStore, .to = 1, .agent = add(flash_, modelled_flash_)}};
    memory.arena_offset = arena_offsets(sites_.editions, slots->front());
    memory.reserved = slots->front();
    memory.staging_offset = memory.arena_offset.back();
    memory.staging_blocks = kBlocks;
    memory.block_bytes = options.block_bytes;
    scheduler_ = std::make_unique<Scheduler>(dispatcher_, sites_, strategies_->strategies(),
                                             strategies_->placement(), residencies_, scheduling);
  }
  ~BareKernel() { run(scheduler_->drain()); }

  // Loads the neurons that the caches want at the start.
  void fill() {
    run(scheduler_->fill([](uint64_t) {}));
  }
  // Runs all sites for one row.
  void step() {
    run(walk(number_));
    ++number_;
  }

  uint64_t messages() const { return dispatcher_.messages(); }
  SchedulerCounters counters() const { return scheduler_->counters(); }
  // Returns the strategies. Change one only before its first call.
  Strategies& strategies() { return strategies_->strategies(); }

 private:
  static constexpr uint32_t kBlocks = 64;
  static constexpr uint64_t kSequences[] = {0};  // of the one row

  static Dispatcher::Options dispatch(const SiteTable& sites) {
    Dispatcher::Options options;
    for (const Site& site : sites) options.max_units = std::max(options.max_units, site.n);
    return options;
  }
  class Microsecond final : public Cost {
   public:
    uint64_t ns(const Message&, const Payload&, bool) const override { return 1000; }
  };
  Clock& clock(const Options& options) {
    return options.virtual_time ? static_cast<Clock&>(virtual_) : wall_;
  }
  Task<Status> walk(uint32_t number) {
    for (SiteId site = 0; site < sites_.size(); ++site) {
      Pass pass;
      pass.step = number;
      pass.rows = 1;
      pass.sequences = kSequences;
      Status status = co_await scheduler_->pass(site, pass);
      if (!status.ok()) co_return status;
    }
    co_return co_await scheduler_->end_step(number);
  }
  void run(Task<Status> task) {
    while (!task.done()) {
      if (!dispatcher_.turn()) dispatcher_.wait();
    }
    const Status status = task.take();
    TIERD_CHECK_MSG(status.ok(), status.error().line());
  }

  const SiteTable sites_;
  PoolTable pools_;
  WallClock wall_;
  VirtualClock virtual_;
  Waiter waiter_;
  Dispatcher dispatcher_;
  const Microsecond cost_;
  NullAgent dram_;
  NullAgent flash_;
  ModelledAgent modelled_dram_{dram_, cost_, virtual_};
  ModelledAgent modelled_flash_{flash_, cost_, virtual_};
  std::unique_ptr<StrategySet> strategies_;
  std::deque<Residency> residencies_;
  std::unique_ptr<Scheduler> scheduler_;
  uint32_t number_ = 0;
};

}  // namespace tierd
