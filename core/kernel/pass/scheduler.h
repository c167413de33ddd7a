// Takes one site after the other through
//   predict -> plan -> admit -> fetch -> compute -> observe -> look ahead -> merge
// and keeps the residency. One thread; `pass` is the one coroutine, to be read top to bottom (scheduler.cc).
// How bytes are fetched is in supply.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/active_set.h"
#include "core/kernel/counters.h"
#include "core/kernel/memory.h"
#include "core/kernel/observer.h"
#include "core/kernel/pass/computation.h"
#include "core/kernel/pass/firing.h"
#include "core/kernel/pass/idle_sources.h"
#include "core/kernel/pass/joint_runs.h"
#include "core/kernel/pass/look_ahead.h"
#include "core/kernel/pass/pass_plan.h"
#include "core/kernel/pass/prediction.h"
#include "core/kernel/pass/recording.h"
#include "core/kernel/pass/row_masks.h"
#include "core/kernel/pass/unit_loads.h"
#include "core/kernel/placement.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/post/task.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/site_use.h"
#include "core/kernel/strategies.h"
#include "core/kernel/supply/arenas.h"
#include "core/kernel/supply/supply.h"

namespace tierd {

class Scheduler {
 public:
  struct Options {
    Topology topology;
    bool prefetch = true;
    uint32_t read_attempts = 3;  // attempts in all, before a failing read fails its step
    uint32_t max_rows = 1;       // of a pass
    // In every `measure_every`-th step, sites that support it are computed whole; unpredicted neurons are
    // measured and left out of the result. 0: never.
    uint32_t measure_every = 0;
    // The passes of a site that form a window in which the load of units is compared (UnitLoads).
    uint32_t load_window = 5;
    Recording* recording = nullptr;  // of a run without weights
    // Names an extent in an error: file, offset, site.
    std::function<std::string(uint32_t extent)> describe_extent;
  };

  // `sites` are in the order of one step. Each memory has a residency, and a cache among the strategies.
  // Everything referred to outlives the scheduler.
  Scheduler(Dispatcher& dispatcher, const SiteTable& sites, Strategies& strategies, Placement& placement,
            std::deque<Residency>& residencies, Options options);
  ~Scheduler();

  // Runs one site of one step. Its results are guaranteed only when the step has ended: passes whose
  // activations the kernel does not read are computed together, later (JointRuns). Errors: io_error or
  // corrupt naming the extent, plugin_fault naming the plugin, cancelled; the failure may be of an earlier
  // pass. After an error nothing of the step is being computed any more.
  Task<Status> pass(SiteId site, Pass pass);
  // Ends a step, after its last site or when it is given up: everything has been computed then. A cache that
  // wants another split of its arena gets it here. Errors: those of a run, as of `pass`; plugin_fault; those
  // of `resize`.
  Task<Status> end_step(uint32_t step);

  // Between two steps: tells the predictor and the caches that rows of a sequence follow, or end. If
  // begin_sequence fails, the strategies that it reached are told of the end. A fault of end_sequence is kept
  // for take_fault.
  Status begin_sequence(uint64_t sequence, std::string_view label = {});
  void end_sequence(uint64_t sequence);
  // After a step with guesses: reports how many rows were right. A fault is kept for take_fault.
  void rows_kept(uint32_t rows, uint32_t kept);
  // Returns a fault that was not reported yet, once.
  Status take_fault();

  // Fetches the neurons that the caches want before the first step, or between two, as far as there is room.
  // Calls `progress` with the bytes that landed. First tells the agents which of their arenas' addresses are
  // in use.
  Task<Status> fill(std::function<void(uint64_t)> progress);

  // Resizes some of the arenas, between two steps and after `drain`. Call `fill` afterwards for neurons that
  // caches want in a larger arena. Errors: those of `resizable`, and plugin_fault, with everything as it was;
  // internal, see Arena::resize.
  Task<Status> resize(ArenaParts parts);
  // Returns whether an arena can be resized. Error: unsupported or plugin_fault, naming the cache or agent.
  Status resizable(MemoryId memory) const { return arenas_.resizable(memory); }

  // Gives up all look-ahead; done when no read is in flight.
  Task<Status> drain();

  // Returns whether a strategy is quarantined: no pass succeeds before another is in its place.
  bool quarantined() const;

  // Counters to be continued by another scheduler of the same sites; memories and links may differ.
  struct Counted {
    std::vector<MemoryCounters> memories;
    std::vector<LinkCounters> links;  // of the topology
    std::vector<SiteUse> use;         // [sites]
    uint64_t compute_ns = 0;
  };
  Counted counted() const;
  void count_on(const Counted& from);
  SchedulerCounters counters() const;
  const MemoryCounters& counters(MemoryId memory) const { return supplies_[memory - 1u].counters(); }
  const LinkCounters& link_counters(size_t link) const;  // of the topology
  // Returns whether a unit has an unfinished run.
  bool computing() const { return computation_.running() || joint_runs_.running(); }
  // Time spent on this thread: in the predictor; in the agents that fetch and do not compute.
  uint64_t predictor_ns() const { return strategies_.predictor.ns; }
  uint64_t fetching_ns() const;
  const std::vector<SiteUse>& use() const { return use_; }  // [sites]
  // Count since construction: the work of several units, and the moves while they were idle.
  const UnitLoads& loads() const { return loads_; }
  IdleCounters idle() const { return idle_sources_.counters(); }

 private:
  // The present pass.
  struct Current {
    SiteId site = kNoSiteId;
    Pass pass;
    ActiveSet active;  // the neurons that form the result
    ActiveSet whole;   // all neurons, if the pass is measured
    bool measured = false;
    bool masked = false;  // rows use different neurons, see `row_masks_`
    bool joins = false;   // it is computed in a joint run

    // Returns the neurons that are computed: more than `active` if the pass is measured.
    const ActiveSet& computed() const { return whole.size() != 0 ? whole : active; }
  };

  // The steps of a pass, in their order.
  Status predict(Current& current);
  static ActiveSet whole_of(const ActiveSet& active, uint32_t n);
  bool measures(SiteId site, uint32_t step) const;
  bool looks_at_input(SiteId site, uint32_t step) const;
  bool joins(const Current& current) const;
  Status admit(Current& current);
  UseCounters requests() const;
  Task<Status> post_joint_run();
  Task<Status> joint_runs_are_over();
  void fetch();
  bool asked_all();
  void end_gatherings();
  Status end_computation(const Current& current, bool looked_ahead, Status status);
  Status touch(const Current& current);
  Status touch(const Current& current, UnitId unit, const PassPlan::Share& share);
  ActiveSet measure(const Current& current);
  Status observe(const Current& current);
  Status look_ahead(const Current& current);

  void tell_end(uint64_t sequence);

  Task<Status> look_ahead_is_over();
  Task<Status> split_anew();

  void pump();
  Supply& supply_of(UnitId unit) { return supplies_[unit_memory(unit) - 1u]; }
  MemoryId unit_memory(UnitId unit) const { return options_.topology.units[unit].memory; }
  UnitId units() const { return static_cast<UnitId>(options_.topology.units.size()); }
  bool stopping();
  size_t link_of_supply(size_t link) const;  // its number among the links into the same memory
  KernelObserver* observer() const { return dispatcher_.observer(); }

  Dispatcher& dispatcher_;
  const SiteTable& sites_;
  Strategies& strategies_;
  Options options_;
  uint64_t compute_ns_ = 0;
  Notice changed_;                              // woken by completions
  std::vector<SourceMemory*> source_memories_;  // [memories] those of `supplies_`
  std::deque<Supply> supplies_;                 // [memories]
  Prediction prediction_;
  PassPlan plan_;            // of the present pass
  Computation computation_;  // of the present pass
  JointRuns joint_runs_;
  LookAhead look_ahead_;
  Firing firing_;
  IdleSources idle_sources_;
  Arenas arenas_;
  UnitLoads loads_;                  // of several units
  std::vector<SiteUse> use_;         // [sites]
  std::vector<uint64_t> row_masks_;  // of the present pass, if rows use different neurons
  std::vector<float> contribution_;  // used by one function, kept for its memory
  Status fault_;                     // a plugin's fault that was not reported yet
};

}  // namespace tierd
