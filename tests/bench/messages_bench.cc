// Measures the cost of sending a message, of scheduling a site, and of sharing work between threads.
//
//   build/release/bin/messages_bench [--benchmark_repetitions=5]
//
// p50_ns and p99_ns are of single round trips and include the clock's 20 to 50 ns; the time of an iteration
// does not. Benchmarks of other threads need a core for each; with fewer they measure the operating system.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/agent/agent_thread.h"
#include "core/agent/ring.h"
#include "core/base/time.h"
#include "core/kernel/post/dispatcher.h"
#include "tests/bench/bare_kernel.h"
#include "tests/kernel/add_site.h"
#include "tiers/compute/team.h"
#include "tiers/null/null_agent.h"

namespace tierd {
namespace {

constexpr uint64_t kLongSpinNs = 1'000'000'000;
constexpr auto kUntilParked = std::chrono::microseconds(300);

// Times single round trips and shows their median and 99th percentile.
class Trips {
 public:
  explicit Trips(benchmark::State& state) : state_(state) { ns_.reserve(1 << 20); }
  ~Trips() {
    if (ns_.empty()) return;
    std::sort(ns_.begin(), ns_.end());
    state_.counters["p50_ns"] = static_cast<double>(ns_[ns_.size() / 2]);
    state_.counters["p99_ns"] = static_cast<double>(ns_[ns_.size() * 99 / 100]);
  }
  void add(uint64_t ns) {
    if (ns_.size() < ns_.capacity()) ns_.push_back(ns);
  }

 private:
  benchmark::State& state_;
  std::vector<uint64_t> ns_;
};

class Arrival final : public CompletionSink {
 public:
  void on_done(const Message&, const Done&) override { ++count; }
  uint64_t count = 0;
};

// One agent behind a dispatcher.
struct Post {
  explicit Post(Agent& agent) : dispatcher(pools, clock, waiter, {}), number(dispatcher.add_agent(agent)) {}

  void round_trip() {
    Message message;
    message.agent = number;
    const uint64_t before = arrival.count;
    dispatcher.post(message, {}, arrival);
    while (arrival.count == before) dispatcher.turn();
  }

  PoolTable pools;
  WallClock clock;
  Waiter waiter;
  Dispatcher dispatcher;
  uint16_t number;
  Arrival arrival;
};

void measure_trips(benchmark::State& state, Post& post) {
  Trips trips(state);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t begin = now_ns();
    post.round_trip();
    trips.add(now_ns() - begin);
  }
  for (auto _ : state) post.round_trip();
}

void message_same_thread(benchmark::State& state) {
  NullAgent agent;
  Post post(agent);
  measure_trips(state, post);
}
BENCHMARK(message_same_thread);

void message_thread_awake(benchmark::State& state) {
  NullAgent agent;
  AgentThread::Options options;
  options.spin_ns = kLongSpinNs;
  AgentThread thread(agent, options);
  Post post(thread);
  measure_trips(state, post);
}
BENCHMARK(message_thread_awake)->UseRealTime();

// The agent's thread sleeps when the message arrives; the kernel's thread polls for the answer.
void message_thread_parked(benchmark::State& state) {
  NullAgent agent;
  AgentThread thread(agent, {});
  Post post(thread);
  Trips trips(state);
  for (auto _ : state) {
    std::this_thread::sleep_for(kUntilParked);
    const uint64_t begin = now_ns();
    post.round_trip();
    const uint64_t ns = now_ns() - begin;
    trips.add(ns);
    state.SetIterationTime(static_cast<double>(ns) * 1e-9);
  }
  state.counters["wake_ups"] =
      static_cast<double>(thread.wake_ups()) / static_cast<double>(state.iterations());
}
BENCHMARK(message_thread_parked)->UseManualTime();

void ring_same_thread(benchmark::State& state) {
  SpscRing<Message> ring(64);
  Message message;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ring.push(message));
    benchmark::DoNotOptimize(ring.pop(message));
  }
}
BENCHMARK(ring_same_thread);

// Sends a message to another thread and back.
void ring_other_thread(benchmark::State& state) {
  SpscRing<Message> there(64);
  SpscRing<Message> back(64);
  std::atomic<bool> ending{false};
  std::thread echo([&] {
    Message message;
    while (!ending.load(std::memory_order_relaxed)) {
      if (there.pop(message)) (void)back.push(message);
    }
  });
  const auto round_trip = [&] {
    Message message;
    (void)there.push(message);
    while (!back.pop(message)) {
    }
  };
  {
    Trips trips(state);
    for (int i = 0; i < 1000; ++i) {
      const uint64_t begin = now_ns();
      round_trip();
      trips.add(now_ns() - begin);
    }
  }
  for (auto _ : state) round_trip();
  ending.store(true);
  echo.join();
}
BENCHMARK(ring_other_thread)->UseRealTime();

// Runs a dense step over sites of a 7B model's size without moving or computing: the kernel's time alone.
// Arguments: percent of the weights that stay, 100 is resident; whether time is virtual.
constexpr uint32_t kSites = 256;
constexpr uint32_t kNeurons = 32;
constexpr uint32_t kNeuronBytes = 512 << 10;

SiteTable sites_of_a_7b_model() {
  SiteTable sites;
  for (SiteId s = 0; s < kSites; ++s) {
    Site site;
    site.name = "site " + std::to_string(s);
    site.n = kNeurons;
    Edition edition;
    edition.slot_bytes = kNeuronBytes;
    edition.first_extent = s * kNeurons;
    edition.bytes.assign(kNeurons, kNeuronBytes);
    add_site(sites, std::move(site), std::move(edition));
  }
  return sites;
}

void dense_step(benchmark::State& state) {
  const uint64_t all = uint64_t{kSites} * kNeurons * kNeuronBytes;
  BareKernel kernel(sites_of_a_7b_model(), {.arena_bytes = all * static_cast<uint64_t>(state.range(0)) / 100,
                                            .block_bytes = kNeuronBytes,
                                            .virtual_time = state.range(1) != 0});
  kernel.fill();
  kernel.step();
  const uint64_t messages = kernel.messages();
  const StrategyCost before = cost_of(kernel.strategies());
  uint64_t steps = 0;
  for (auto _ : state) {
    kernel.step();
    ++steps;
  }
  const double sites = static_cast<double>(steps) * kSites;
  state.counters["per_site"] =
      benchmark::Counter(sites, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["messages_per_site"] = static_cast<double>(kernel.messages() - messages) / sites;
  const StrategyCost after = cost_of(kernel.strategies());
  state.counters["strategies_us"] =
      static_cast<double>(after.ns - before.ns) * 1e-3 / static_cast<double>(steps);
  state.counters["strategy_calls"] =
      static_cast<double>(after.calls - before.calls) / static_cast<double>(steps);
}
BENCHMARK(dense_step)
    ->ArgNames({"resident_percent", "virtual_time"})
    ->ArgsProduct({{100, 50, 0}, {0, 1}})
    ->Unit(benchmark::kMicrosecond);

// Estimated time of empty work that is large enough to wake another thread.
constexpr uint64_t kWorthWakingNs = 1'000'000'000;

void launch(Team& team) {
  static const std::function<void(uint64_t, uint64_t, uint32_t)> kNothing = [](uint64_t, uint64_t, uint32_t) {
  };
  team.run(uint64_t{2} * team.workers(), 1, kWorthWakingNs, kNothing);
}

void team_launch_awake(benchmark::State& state) {
  Team::Options options;
  options.workers = static_cast<uint32_t>(state.range(0));
  options.spin_ns = kLongSpinNs;
  Team team(options);
  Trips trips(state);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t begin = now_ns();
    launch(team);
    trips.add(now_ns() - begin);
  }
  for (auto _ : state) launch(team);
}
BENCHMARK(team_launch_awake)->ArgName("workers")->Arg(2)->UseRealTime();

void team_launch_parked(benchmark::State& state) {
  Team::Options options;
  options.workers = static_cast<uint32_t>(state.range(0));
  Team team(options);
  Trips trips(state);
  for (auto _ : state) {
    std::this_thread::sleep_for(kUntilParked);
    const uint64_t begin = now_ns();
    launch(team);
    const uint64_t ns = now_ns() - begin;
    trips.add(ns);
    state.SetIterationTime(static_cast<double>(ns) * 1e-9);
  }
  state.counters["wake_ups"] = static_cast<double>(team.wake_ups()) / static_cast<double>(state.iterations());
}
BENCHMARK(team_launch_parked)->ArgName("workers")->Arg(2)->UseManualTime();

}  // namespace
}  // namespace tierd

BENCHMARK_MAIN();
