// Takes one site after the other through
//   predict -> assign -> encode -> admit -> fetch -> compute -> merge -> observe -> look ahead
// and keeps the residency. One thread; `pass` is the one coroutine, to be read top to bottom (scheduler.cc).
// How bytes come in is in fetches.cc.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/active_set.h"
#include "core/kernel/dispatcher.h"
#include "core/kernel/observer.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/staging.h"
#include "core/kernel/strategies.h"
#include "core/kernel/task.h"

namespace tierd {

// What is counted for the report. Times in ns, sizes in bytes.
struct SchedulerCounters {
  uint64_t hits = 0;    // neurons valid when their site began
  uint64_t staged = 0;  // asked for ahead of time: in staging or on their way
  uint64_t misses = 0;  // neither
  uint64_t evictions = 0;
  uint64_t wasted = 0;  // neurons read ahead and never used
  uint64_t prefetch_failed = 0;
  uint64_t retries = 0;
  uint64_t resident_bytes = 0;  // weights computed from the arena
  uint64_t streamed_bytes = 0;  // weights computed as they came from flash
  uint64_t read_bytes = 0;      // brought in by reads, padding included
  uint64_t compute_ns = 0;      // of compute messages, by their agent's clock
};

class Scheduler : private CompletionSink {
 public:
  struct Options {
    uint16_t flash_agent = 0;
    uint16_t compute_agent = 0;
    uint16_t memory_pool = 0;  // of the compute agent: arena and staging
    std::vector<uint64_t>
        arena_offset;             // [sites] where the slots of a canonical site begin in that pool, bytes
    uint64_t staging_offset = 0;  // where the staging blocks begin
    uint32_t staging_blocks = 0;
    uint32_t block_bytes = 0;  // at least the largest slot
    bool prefetch = true;
    uint32_t read_attempts = 3;  // a failed read is tried so often in all before its step fails
    // Names an extent in an error: file, offset, site.
    std::function<std::string(uint32_t extent)> describe_extent;
  };

  // `sites` in the order of one step. Everything referred to outlives the scheduler.
  Scheduler(Dispatcher& dispatcher, const std::vector<Site>& sites, Strategies& strategies,
            Residency& residency, Options options);
  ~Scheduler() override;

  // One site of one step. Errors: io_error or corrupt naming the extent, plugin_fault naming the plugin,
  // cancelled. After an error nothing of the pass is in flight any more.
  Task<Status> pass(SiteId site, Pass pass);
  // After the last site of a step, or when a step was given up.
  Status end_step(uint32_t step);

  // Between two steps, to the predictor: rows of a sequence follow, or come no more. The fault of an end, for
  // which nobody waits, is kept for take_fault.
  Status begin_sequence(uint64_t sequence);
  void end_sequence(uint64_t sequence);
  // A fault that nobody was told of yet; told once.
  Status take_fault();

  // Brings in what the cache wants before the first step. `progress` hears of bytes that landed.
  Task<Status> fill(std::function<void(uint64_t)> progress);

  // Gives up all look-ahead; done when no read is in flight.
  Task<Status> drain();

  // A strategy has failed and is not asked any more: no pass succeeds before another is in its place.
  bool quarantined() const;

  const SchedulerCounters& counters() const { return counters_; }

 private:
  enum class FetchState : uint8_t { reading, landed, computing };
  // One read: neurons of one site on their way into arena slots or into one staging block.
  struct Fetch {
    SiteId site = kNoSiteId;
    uint32_t step = 0;
    Priority priority = Priority::demand;
    MessageId message;
    FetchState state = FetchState::reading;
    bool unwanted = false;  // given up while the read is in flight
    uint32_t block = kNoBlock;
    uint32_t attempts = 0;
    MessageId computed_by;  // once computing
    std::vector<uint32_t> neurons;
    std::list<Fetch>::iterator place;  // in fetches_

    bool into_arena() const { return block == kNoBlock; }
  };
  // Admitted neurons that wait to be asked for; those to be kept have their slots leased.
  struct Plan {
    std::vector<uint32_t> neurons;
    std::vector<uint8_t> verdicts;
    size_t next = 0;
    bool done() const { return next == neurons.size(); }
  };
  // What a later site will want.
  struct Wish {
    SiteId site = kNoSiteId;
    uint32_t step = 0;
    Plan plan;
  };
  // The present pass.
  struct Current {
    SiteId site = kNoSiteId;
    Pass pass;
    ActiveSet active;
    std::vector<uint32_t> resident;  // valid when the pass began
    std::vector<uint32_t> pinned;    // those, and what landed in the arena since; unpinned when the pass ends
    Plan plan;                       // missing neurons
    std::vector<Fetch*> awaited;     // reads that bring some of the others
    std::vector<const Fetch*> source;  // [n] which of them a neuron is computed from
    uint32_t running = 0;              // compute messages under way
    bool started = false;              // the segment before was posted
    bool finished = false;             // the segment after was posted
    Error error{Code::ok, {}, {}};

    bool failed() const { return error.code != Code::ok; }
    bool wants(uint32_t neuron) const { return active.contains(neuron); }
  };

  void on_done(const Message& message, const Done& done) override;
  void on_read_done(const Message& message, const Done& done);
  void on_compute_done(const Message& message, const Done& done);

  // The steps of a pass, in their order.
  Status predict(Current& current);
  Result<ActiveSet> ask_predictor(const Current& current);
  Status assign(const Current& current);
  Status encode(const Current& current);
  Status admit(Current& current);
  void fetch(Current& current);
  void compute(Current& current);
  Status observe(const Current& current);
  Status look_ahead(const Current& current);
  void release(Current& current);

  // Asks the cache about neurons that are neither here nor coming; evicts its victims, leases slots for what
  // stays.
  Status ask_cache(SiteId site, std::vector<uint32_t> missing, Priority priority, bool bypass, Plan& plan);
  // Starts the next read of a plan. False when it must wait for a staging block or a message slot.
  bool start_next(Plan& plan, SiteId site, uint32_t step, Priority priority, Fetch*& started);
  void post_read(Fetch& fetch);
  void pump_wishes();
  Plan take_wish(SiteId site, uint32_t step);
  void claim_from_wishes(SiteId home, uint32_t neuron);
  void drop_plan(SiteId site, Plan& plan);
  bool free_a_block();
  void give_up(Fetch& fetch);
  void retire(Fetch& fetch, bool used);
  bool is_awaited(const Fetch& fetch) const;
  bool reading(SiteId site, uint32_t step) const;
  void keep_fault(const Status& answer);
  bool stopping();
  KernelObserver* observer() const { return dispatcher_.observer(); }
  uint64_t offset_in_pool(const Fetch& fetch, uint32_t index) const;
  uint64_t slot_offset(SiteId site, uint32_t neuron) const;
  Error read_error(const Fetch& fetch, const Done& done) const;
  SiteId domain(SiteId site) const { return sites_[site].domain; }

  Dispatcher& dispatcher_;
  const std::vector<Site>& sites_;
  Strategies& strategies_;
  Residency& residency_;
  Options options_;
  Staging staging_;

  std::list<Fetch> fetches_;              // in the order of their start
  std::list<Fetch> unused_;               // retired, with their memory
  std::vector<Fetch*> fetch_of_message_;  // by message slot
  std::deque<Wish> wishes_;
  std::vector<uint64_t> wished_;  // [sites] one past the latest step for which a wish was made
  Current* current_ = nullptr;
  // Of one function each, kept for their memory.
  std::vector<Unit> units_;
  std::vector<uint8_t> answers_;
  std::vector<tierd_neuron> victims_;
  Notice changed_;
  std::function<void(uint64_t)> fill_progress_;
  Error fill_error_{Code::ok, {}, {}};
  Error fault_{Code::ok, {}, {}};  // of a plugin, not yet told
  SchedulerCounters counters_;
};

}  // namespace tierd
