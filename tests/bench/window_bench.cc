// What it costs to keep a sliding window of neurons in memory (LLM in a flash, section 3.3: memory is managed
// in time proportional to what changes): evicting, admitting and booking, without reading or computing
// anything.
//
//   build/release/bin/window_bench
//
// A token uses `active` of `neurons`, of which `changed` are new; with a window of one token as many leave.
// If the cost is that of what is used and changed, the time of a row does not depend on `neurons`.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "core/host/strategy_set.h"
#include "core/kernel/dispatcher.h"
#include "core/kernel/residency.h"
#include "core/kernel/scheduler.h"
#include "tiers/null/null_agent.h"
#include "tools/assembly/strategy_choices.h"

namespace tierd {
namespace {

constexpr uint64_t kSequences[] = {0};  // of the one row
constexpr uint32_t kNeuronBytes = 16 << 10;
constexpr uint32_t kBlocks = 64;

Dispatcher::Options sized(uint32_t neurons) {
  Dispatcher::Options options;
  options.max_units = neurons;
  return options;
}

// A network of whose neurons a range is active that moves on with each token.
class MovingRange {
 public:
  MovingRange(uint32_t neurons, uint32_t active, uint32_t changed)
      : neurons_(neurons), active_(active), changed_(changed), dispatcher_(pools_, sized(neurons)) {
    Site site;
    site.name = "network";
    site.domain = 0;
    site.n = neurons;
    site.axis = Axis::neuron;
    site.slot_bytes = kNeuronBytes;
    site.bytes.assign(neurons, kNeuronBytes);
    sites_.push_back(std::move(site));

    Config config;
    config.cache = {.name = "residency-window",
                    .settings = {{.key = "k", .value = int64_t{1}, .origin = "bench"}}};
    auto made = StrategySet::create(*read_tensors(*choose_strategies(config)), sites_, {});
    TIERD_CHECK(made.ok());
    strategies_ = std::move(*made);
    auto slots = strategies_->share(uint64_t{active + changed} * kNeuronBytes);
    TIERD_CHECK(slots.ok());
    residencies_.emplace_back(sites_, slots->front());
    strategies_->set_residencies(residencies_);
    Strategy<tierd_predictor_1>& predictor = strategies_->strategies().predictor;
    predictor.self = this;
    predictor.table = {};
    predictor.table.predict = [](void* self, uint32_t, const tierd_rows_view*, tierd_set_out* out) {
      return static_cast<const MovingRange*>(self)->predict(*out);
    };

    Scheduler::Options options;
    UnitMemory& memory = options.units.emplace_back().memory;
    memory.agent = dispatcher_.add_agent(dram_);
    options.flash_agent = dispatcher_.add_agent(flash_);
    memory.arena_offset = arena_offsets(sites_, slots->front());
    memory.staging_offset = uint64_t{slots->front().front()} * kNeuronBytes;
    memory.staging_blocks = kBlocks;
    memory.block_bytes = 64 * kNeuronBytes;
    scheduler_ = std::make_unique<Scheduler>(dispatcher_, sites_, strategies_->strategies(),
                                             strategies_->placement(), residencies_, options);
  }
  ~MovingRange() { run(scheduler_->drain()); }

  void token() {
    run(walk());
    first_ = (first_ + changed_) % neurons_;
    ++number_;
  }
  const SchedulerCounters& counters() const { return scheduler_->counters(); }

 private:
  int predict(tierd_set_out& out) const {
    const uint32_t end = first_ + active_;
    uint32_t n = 0;
    for (uint32_t i = neurons_; i < end; ++i) out.idx[n++] = i - neurons_;  // what came round again
    for (uint32_t i = first_; i < std::min(end, neurons_); ++i) out.idx[n++] = i;
    out.n = n;
    out.all = 0;
    return TIERD_OK;
  }
  Task<Status> walk() {
    Pass pass;
    pass.step = number_;
    pass.rows = 1;
    pass.sequences = kSequences;
    Status status = co_await scheduler_->pass(0, pass);
    if (!status.ok()) co_return status;
    co_return co_await scheduler_->end_step(number_);
  }
  void run(Task<Status> task) {
    while (!task.done()) {
      if (!dispatcher_.turn()) dispatcher_.wait();
    }
    const Status status = task.take();
    TIERD_CHECK_MSG(status.ok(), status.error().line());
  }

  const uint32_t neurons_, active_, changed_;
  PoolTable pools_;
  Dispatcher dispatcher_;
  NullAgent dram_;
  NullAgent flash_;
  std::vector<Site> sites_;
  std::unique_ptr<StrategySet> strategies_;
  std::deque<Residency> residencies_;
  std::unique_ptr<Scheduler> scheduler_;
  uint32_t first_ = 0;
  uint32_t number_ = 0;
};

void window(benchmark::State& state) {
  MovingRange world(static_cast<uint32_t>(state.range(0)), static_cast<uint32_t>(state.range(1)),
                    static_cast<uint32_t>(state.range(2)));
  for (int i = 0; i < 64; ++i) world.token();
  const SchedulerCounters before = world.counters();
  double tokens = 0;
  for (auto _ : state) {
    world.token();
    ++tokens;
  }
  const SchedulerCounters& after = world.counters();
  state.counters["came"] = static_cast<double>(after.misses - before.misses) / tokens;
  state.counters["left"] = static_cast<double>(after.evictions - before.evictions) / tokens;
}
BENCHMARK(window)
    ->ArgNames({"neurons", "active", "changed"})
    ->ArgsProduct({{4096, 16384, 65536}, {1600}, {0, 100, 400, 1600}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tierd

BENCHMARK_MAIN();
