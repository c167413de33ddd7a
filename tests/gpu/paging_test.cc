// Pages a model through store, DRAM and the memory of a GPU emulated by the host, with the agents and caches
// of real runs: caches in both memories, three editions chosen for each neuron, and two computing units. The
// logits equal those of plain loops, bit for bit: on the wall clock, in virtual time with any order of
// delivery, and until an agent dies at any message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <fstream>

#include "core/kernel/pass/scheduler.h"
#include "core/kernel/post/clocks.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/supply/arena.h"
#include "core/strategy/strategy_set.h"
#include "core/time/modelled_agent.h"
#include "tests/gpu/paged_model.h"
#include "tests/kernel/mortal_agent.h"
#include "tests/kernel/scripted_strategies.h"
#include "tests/plugins/choose.h"
#include "tests/sanitized.h"
#include "tiers/flash/flash_agent.h"
#include "tiers/gpu/gpu_agent.h"
#include "tiers/gpu/host_device.h"

namespace tierd {
namespace {

using testing::HasSubstr;

constexpr MemoryId kDram = 1, kGpu = 2;
constexpr uint16_t kFlashAgent = 1, kDramAgent = 2, kGpuAgent = 3;
constexpr uint32_t kBlocks = 4;
constexpr uint32_t kBlockBytes = kPartialNeurons * PagedModel::kSlotBytes;
constexpr uint32_t kTokens[][PagedModel::kMostRows] = {{3, 40}, {17, 0}, {33, 2}, {3, 47}};

struct PagingOptions {
  const char* cache = "lru";
  bool virtual_time = false;
  std::optional<uint64_t> shuffle = std::nullopt;
  HostDevice::Link link = {};
  uint32_t copy_fails = 0;  // the number of the GPU's copy that fails
  uint16_t mortal = 0;      // the agent that dies after accepting dies_at messages
  uint32_t dies_at = 0;
};

const PagedModel& model() {
  static const PagedModel model(5);
  return model;
}
std::string store_path() {
  return testing::TempDir() + "paging-" + std::to_string(getpid());
}

// The duration of a message is drawn from its numbers.
class DrawnCost final : public Cost {
 public:
  uint64_t ns(const Message& message, const Payload& payload, bool) const override {
    Random random(message.id.slot + 1000 * message.site + message.step);
    return 1 + random.below(1000) + 10 * payload.units.size();
  }
};

// A device one of whose copies fails.
class FailingDevice final : public Device {
 public:
  FailingDevice(std::unique_ptr<Device> device, uint32_t fails) : device_(std::move(device)), fails_(fails) {}
  std::string backend() const override { return device_->backend(); }
  void load(uint64_t offset, std::span<const std::byte> bytes) override { device_->load(offset, bytes); }
  void begin(Engine engine, const DeviceRequest& request) override { device_->begin(engine, request); }
  std::optional<Done> over(Engine engine) override {
    std::optional<Done> done = device_->over(engine);
    if (done && engine == Engine::copy && ++copies == fails_) done->status = DoneStatus::internal;
    return done;
  }
  int wait_fd() const override { return device_->wait_fd(); }
  void linear(const PackedMatrix& matrix, const float* x, uint32_t rows, float* y) override {
    device_->linear(matrix, x, rows, y);
  }
  AgentCounts counts() const override { return device_->counts(); }

  uint32_t copies = 0;

 private:
  const std::unique_ptr<Device> device_;
  const uint32_t fails_;
};

// Counts the runs that were posted before the copy that they need had ended.
class CountsRunsBehind final : public SilentObserver {
 public:
  void posted(const Message& message, const Payload&) override {
    runs += message.op == Op::run && message.about != MessageId{} ? 1 : 0;
  }
  uint32_t runs = 0;
};

class Paging {
 public:
  Paging(const PagedModel& model, const PagingOptions& options) : model_(model) {
    Dispatcher::Options dispatch;
    dispatch.max_units = model.sites().most_neurons();
    dispatch.shuffle_seed = options.shuffle;
    dispatcher_ = std::make_unique<Dispatcher>(pools_, clock(options), waiter_, dispatch);
    dispatcher_->set_observer(&behind_);
    make_strategies(options);
    make_agents(options);
    for (const std::vector<uint32_t>& slots : slots_)
      residencies_.emplace_back(model.sites().editions, slots);
    set_->set_residencies(residencies_);
    Scheduler::Options scheduling;
    scheduling.topology = topology_;
    scheduling.max_rows = PagedModel::kMostRows;
    scheduler_ = std::make_unique<Scheduler>(*dispatcher_, model.sites(), set_->strategies(),
                                             set_->placement(), residencies_, scheduling);
  }

  // Returns the logits of the step's rows, one row after the other.
  Result<std::vector<float>> step(uint32_t step, std::span<const uint32_t> tokens) {
    std::vector<RowInfo> rows;
    std::vector<uint32_t> given;
    for (uint32_t i = 0; i < tokens.size(); ++i) {
      rows.push_back({tokens[i], 0, 0, i});
      given.push_back(tokens[i] / kGroupRows);
    }
    std::ranges::sort(given);
    given.erase(std::unique(given.begin(), given.end()), given.end());
    const ActiveSet embedded = ActiveSet::of(given);
    step_ = step;
    Status status;
    for (SiteId site = 0; site < model_.sites().size() && status.ok(); ++site) {
      Pass pass;
      pass.step = step;
      pass.rows = static_cast<uint16_t>(rows.size());
      pass.row_info = rows;
      pass.sequences = std::span(kSequences).first(rows.size());
      if (site == 0) pass.given = &embedded;
      status = run(scheduler_->pass(site, pass));
    }
    TIERD_TRY(run(scheduler_->end_step(step)));
    TIERD_TRY(status);
    std::vector<float> logits;
    const Site& head = model_.sites()[model_.head()];
    for (size_t i = 0; i < rows.size(); ++i) {
      const float* const row =
          dispatcher_->values(kGpuAgent, head.output.offset, rows.size() * head.output.stride) +
          i * head.output.stride;
      logits.insert(logits.end(), row, row + head.n_out);
    }
    return logits;
  }
  const MemoryCounters& counters(MemoryId memory) const { return scheduler_->counters(memory); }
  uint32_t runs_behind() const { return behind_.runs; }
  uint32_t copies() const { return failing_->copies; }
  bool died() const { return mortal_ != nullptr && mortal_->dead(); }
  uint64_t now_ns() const { return dispatcher_->now_ns(); }

  void expect_nothing_lost() {
    ASSERT_TRUE(run(scheduler_->drain()).ok());
    while (dispatcher_->in_flight() != 0) turn();
    for (uint16_t agent = kFlashAgent; agent <= kGpuAgent; ++agent) {
      EXPECT_EQ(dispatcher_->queue(agent).waiting, 0u);
      EXPECT_EQ(dispatcher_->queue(agent).credits, agents_[agent - 1u]->credits());
    }
    for (const Residency& of : residencies_) {
      for (EditionId e = 0; e < model_.sites().editions.size(); ++e) {
        uint32_t valid = 0;
        for (uint32_t i = 0; i < model_.sites().editions[e].n; ++i) {
          EXPECT_FALSE(of.leased(e, i) || of.pinned(e, i));
          valid += of.valid(e, i) ? 1 : 0;
        }
        EXPECT_EQ(of.free_slots(e) + valid, of.max_slots(e));
      }
    }
  }

 private:
  Clock& clock(const PagingOptions& options) {
    return options.virtual_time ? static_cast<Clock&>(virtual_) : wall_;
  }

  // Makes the built-in caches and balancer. Predictor and quantizer follow paged_model.h.
  void make_strategies(const PagingOptions& options) {
    topology_.memories.resize(2);
    topology_.memory(kGpu).over = kDram;
    topology_.units = {{.agent = kDramAgent, .memory = kDram}, {.agent = kGpuAgent, .memory = kGpu}};
    topology_.links = {{.from = kStore, .to = kDram, .agent = kFlashAgent},
                       {.from = kDram, .to = kGpu, .agent = kGpuAgent, .lane = 1}};
    StrategySet::Options of_set;
    of_set.topology = topology_;
    StrategyChoices choices = choose_all(options.cache);
    choices.balancer = choose("balancer", "round-robin");
    auto made = StrategySet::create(choices, model_.sites(), of_set);
    ASSERT_TRUE(made.ok()) << made.error().line();
    set_ = std::move(*made);
    // The arenas hold a third and a fifth of all weights.
    const uint64_t all = model_.content().size();
    const auto slots = set_->share({all / 3, all / 5});
    ASSERT_TRUE(slots.ok()) << slots.error().line();
    slots_ = *slots;
    script_.predict = [this](SiteId site, tierd_set_out* out) {
      out->all = model_.sites()[site].added ? 0 : 1;
      for (uint32_t i = 0; i < model_.sites()[site].n && out->all == 0; ++i) {
        if (is_active(site, i, step_)) out->idx[out->n++] = i;
      }
      if (out->row_mask != nullptr) std::fill_n(out->row_mask, out->n, ~uint64_t{0});
      return 0;
    };
    script_.choose = [this](const tierd_set_view* set, uint8_t* level) {
      for (uint32_t i = 0; i < set->n; ++i) {
        const uint32_t neuron = set->idx == nullptr ? i : set->idx[i];
        level[i] = static_cast<uint8_t>(level_of(set->site, neuron, step_));
      }
      return 0;
    };
    script_.look_ahead = [this](SiteId site) {
      return std::vector<Ahead>{{(site + 1) % static_cast<SiteId>(model_.sites().size()), 1}};
    };
    const Strategies scripted = script_.strategies();
    set_->strategies().predictor = scripted.predictor;
    set_->strategies().quantizer = scripted.quantizer;
  }

  void make_agents(const PagingOptions& options) {
    auto device = open_device(store_path(), {.depth = 16});
    ASSERT_TRUE(device.ok()) << device.error().line();
    flash_ = std::make_unique<FlashAgent>(kFlashAgent, pools_, clock(options), std::move(*device),
                                          model_.extents(), FlashOptions());
    const ComputeKernels& kernels = *kernels_by_name("scalar");
    const auto team = [] { return std::make_unique<Team>(Team::Options{}); };
    auto dram = DramAgent::create(memory(kDram, kDramAgent), pools_, model_.plan(), kernels, team());
    ASSERT_TRUE(dram.ok()) << dram.error().line();
    dram_ = std::move(*dram);
    auto gpu =
        HostDevice::create(memory(kGpu, kGpuAgent), options.virtual_time ? HostDevice::Link() : options.link,
                           pools_, clock(options), model_.plan(), kernels, team());
    ASSERT_TRUE(gpu.ok()) << gpu.error().line();
    auto failing = std::make_unique<FailingDevice>(std::move(*gpu), options.copy_fails);
    failing_ = failing.get();
    gpu_ = std::make_unique<GpuAgent>(std::move(failing), clock(options));
    for (Agent* agent : {static_cast<Agent*>(flash_.get()), static_cast<Agent*>(dram_.get()),
                         static_cast<Agent*>(gpu_.get())}) {
      if (options.virtual_time) agent = &modelled_.emplace_back(*agent, cost_, virtual_);
      if (agents_.size() + 1 == options.mortal) {
        mortal_ = std::make_unique<MortalAgent>(*agent);
        mortal_->dies_at = options.dies_at;
        agent = mortal_.get();
      }
      agents_.push_back(agent);
      dispatcher_->add_agent(*agent);
    }
  }
  DramAgent::Options memory(MemoryId id, uint16_t agent) {
    Memory& memory = topology_.memory(id);
    memory.agent = agent;
    memory.reserved = slots_[id - 1u];
    memory.arena_offset = arena_offsets(model_.sites().editions, memory.reserved);
    memory.staging_offset = memory.arena_offset.back();
    memory.staging_blocks = kBlocks;
    memory.block_bytes = kBlockBytes;
    for (const uint32_t n : memory.reserved) memory.arena_bytes += uint64_t{n} * PagedModel::kSlotBytes;
    DramAgent::Options options;
    options.number = agent;
    options.memory = id;
    options.arena_bytes = memory.staging_offset;
    options.staging_bytes = kBlocks * kBlockBytes;
    return options;
  }

  Status run(Task<Status> task) {
    while (!task.done()) turn();
    return task.take();
  }
  void turn() {
    if (dispatcher_->turn()) {
      idle_ = 0;
      return;
    }
    if (!dispatcher_->wait() || ++idle_ > 1000) {
      ADD_FAILURE() << "the kernel waits for nothing";
      std::abort();  // the coroutine hangs; the test cannot go on
    }
  }

  const PagedModel& model_;
  PoolTable pools_;
  WallClock wall_;
  VirtualClock virtual_;
  const DrawnCost cost_;
  Topology topology_;
  Script script_;
  uint32_t step_ = 0;
  uint32_t idle_ = 0;
  std::unique_ptr<StrategySet> set_;
  std::vector<std::vector<uint32_t>> slots_;
  std::unique_ptr<FlashAgent> flash_;
  std::unique_ptr<DramAgent> dram_;
  std::unique_ptr<GpuAgent> gpu_;
  const FailingDevice* failing_ = nullptr;
  CountsRunsBehind behind_;
  std::deque<ModelledAgent> modelled_;
  std::unique_ptr<MortalAgent> mortal_;
  std::vector<Agent*> agents_;
  Waiter waiter_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::deque<Residency> residencies_;
  std::unique_ptr<Scheduler> scheduler_;
};

// Every other step has a single row.
std::span<const uint32_t> tokens_of(uint32_t step) {
  return std::span(kTokens[step]).first(step % 2 == 0 ? PagedModel::kMostRows : 1);
}
void expect_the_bits_of_plain_loops(std::span<const float> logits, uint32_t step) {
  size_t at = 0;
  for (const uint32_t token : tokens_of(step)) {
    const std::vector<float> expected = model().logits(token, step);
    ASSERT_LE(at + expected.size(), logits.size());
    for (const float value : expected)
      ASSERT_EQ(logits[at++], value) << "step " << step << ", logit " << at - 1;
  }
}
void expect_whole_run(const PagingOptions& options) {
  Paging paging(model(), options);
  for (uint32_t step = 0; step < std::size(kTokens); ++step) {
    const auto logits = paging.step(step, tokens_of(step));
    ASSERT_TRUE(logits.ok()) << logits.error().line();
    expect_the_bits_of_plain_loops(*logits, step);
  }
  for (const MemoryId memory : {kDram, kGpu}) {
    EXPECT_EQ(paging.counters(memory).hits != 0, options.cache != std::string("none"));
    EXPECT_GT(paging.counters(memory).misses, 0u);
  }
  EXPECT_GT(paging.runs_behind(), 0u);
  paging.expect_nothing_lost();
}

class PagingTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::span<const std::byte> content = model().content();
    std::ofstream(store_path(), std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  }
  static void TearDownTestSuite() { ::unlink(store_path().c_str()); }
};

TEST_F(PagingTest, SaysWhatPlainLoopsSay) {
  for (const char* cache : {"lru", "pinned", "none", "lfu"}) {
    SCOPED_TRACE(cache);
    expect_whole_run({.cache = cache});
    expect_whole_run({.cache = cache, .link = {.bytes_per_second = 400'000'000, .latency_ns = 2'000}});
  }
}

TEST_F(PagingTest, InVirtualTimeWhateverTheOrderOfDelivery) {
  expect_whole_run({.virtual_time = true});
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    expect_whole_run({.cache = seed % 2 == 0 ? "lru" : "lfu", .virtual_time = true, .shuffle = seed});
    if (testing::Test::HasFailure()) return;
  }
}

// The step with the failed copy ends with one error line, and the next step gives the bits of plain loops.
TEST_F(PagingTest, WhicheverCopyFails) {
  for (const bool virtual_time : {false, true}) {
    uint32_t fails = 0;
    for (bool failed = true; failed;) {
      Paging paging(model(), {.virtual_time = virtual_time, .copy_fails = ++fails});
      SCOPED_TRACE("copy " + std::to_string(fails));
      for (uint32_t step = 0; step < 2; ++step) {
        const bool until_then = paging.copies() < fails;
        const auto logits = paging.step(step, tokens_of(step));
        failed = until_then && paging.copies() >= fails;
        if (failed) {
          if (logits.ok()) continue;  // no pass waited for the copy, or it was made again
          EXPECT_EQ(logits.error().line(),
                    "agent 3: moving neurons from memory 1 to memory 2 failed after 1 attempts: internal");
        } else {
          ASSERT_TRUE(logits.ok()) << logits.error().line();
          expect_the_bits_of_plain_loops(*logits, step);
        }
      }
      failed = paging.copies() >= fails;
      paging.expect_nothing_lost();
      if (HasFailure()) return;
    }
    EXPECT_GT(fails, 10u);
  }
}

// Each step before the death gives the bits of plain loops, each later one ends with an error line, and
// nothing hangs or is lost.
TEST_F(PagingTest, UntilAnAgentDiesAtWhicheverMessage) {
  for (const bool virtual_time : {false, true}) {
    if (kSanitized && !virtual_time) continue;
    for (const uint16_t mortal : {kFlashAgent, kDramAgent, kGpuAgent}) {
      uint32_t dies_at = 0;
      for (bool died = true; died;) {
        PagingOptions options{.virtual_time = virtual_time, .mortal = mortal, .dies_at = ++dies_at};
        SCOPED_TRACE("agent " + std::to_string(mortal) + " dies at its message " + std::to_string(dies_at));
        Paging paging(model(), options);
        for (uint32_t step = 0; step < 2; ++step) {
          const auto logits = paging.step(step, tokens_of(step));
          if (logits.ok()) {
            expect_the_bits_of_plain_loops(*logits, step);
          } else {
            EXPECT_TRUE(paging.died());
            EXPECT_THAT(logits.error().line(), HasSubstr("is lost"));
          }
        }
        died = paging.died();
        paging.expect_nothing_lost();
        if (HasFailure()) return;
      }
      EXPECT_GT(dies_at, 10u) << "of agent " << mortal;
    }
  }
}

}  // namespace
}  // namespace tierd
