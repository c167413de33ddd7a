// Times work of several threads at once, each bound to a processor of its own, as compute workers are.
#pragma once

#include <benchmark/benchmark.h>
#include <sched.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

namespace tierd {

inline double thread_cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Binds the calling thread to the i-th processor that this program may use, as the workers are bound.
inline void bind_to_processor(uint32_t i) {
  static const cpu_set_t kAllowed = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &kAllowed) || i-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

// Runs work(0) … work(threads - 1), each on a thread of its own, once an iteration. The time excludes the
// start of threads. `amount`: the work of one iteration, in units of 1e9. The counter `cpu` is the share of
// the time for which the threads had a processor. A run far below 1 was disturbed, and is not reliable.
inline void measure(benchmark::State& state, const char* unit, double amount,
                    const std::function<void(uint32_t)>& work) {
  const auto count = static_cast<uint32_t>(state.range(0));
  double wall_seconds = 0;
  std::atomic<double> cpu_seconds = 0;
  for (auto _ : state) {
    std::latch ready(count), start(1);
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        bind_to_processor(i);
        ready.count_down();
        start.wait();
        const double begin = thread_cpu_seconds();
        work(i);
        cpu_seconds += thread_cpu_seconds() - begin;
      });
    }
    ready.wait();
    const auto begin = std::chrono::steady_clock::now();
    start.count_down();
    for (auto& thread : threads) thread.join();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    state.SetIterationTime(seconds);
    wall_seconds += seconds;
  }
  state.counters[unit] = benchmark::Counter(amount, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["cpu"] = cpu_seconds / (count * wall_seconds);
}

}  // namespace tierd
