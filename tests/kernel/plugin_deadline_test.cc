// Decides which plugin calls were too long: those that used the processor or slept for too long, not those
// during which the whole process was stopped.
#include "core/kernel/plugin_deadline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <functional>
#include <thread>

#include "core/kernel/strategies.h"

namespace tierd {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr uint64_t kMs = 1'000'000;

void compute(uint64_t ns) {
  const auto cpu = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  };
  for (const uint64_t end = cpu() + ns; cpu() < end;) {
  }
}

void sleep(uint64_t ns) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

StrategyBase strategy_of(std::string kind, uint64_t deadline_ns, PluginCalls* calls = nullptr) {
  StrategyBase strategy;
  strategy.kind = std::move(kind);
  strategy.name = "test";
  strategy.deadline_ns = deadline_ns;
  strategy.running = calls;
  strategy.lasting_name = lasting_name("cache 'test'");
  return strategy;
}

Status call(StrategyBase& strategy, const std::function<void()>& work, int answer = TIERD_OK) {
  return strategy.watch("admit", [&] { return work(), answer; });
}

TEST(PluginDeadline, ThoseThatComputeForTooLongAreQuarantined) {
  StrategyBase strategy = strategy_of("cache", 200 * kMs);
  EXPECT_TRUE(call(strategy, [] { compute(kMs); }).ok());
  const Status status = call(strategy, [] { compute(250 * kMs); });
  EXPECT_EQ(status.code(), Code::plugin_fault);
  EXPECT_THAT(status.error().line(), HasSubstr("ms of the processor, at most 200 ms were allowed"));
  EXPECT_TRUE(strategy.quarantined());
}

TEST(PluginDeadline, ThoseThatSleepHaveTenTimesAsMuch) {
  StrategyBase strategy = strategy_of("cache", 500 * kMs);
  EXPECT_TRUE(call(strategy, [] { sleep(600 * kMs); }).ok());
  StrategyBase sleepy = strategy_of("cache", kMs);
  const Status status = call(sleepy, [] { sleep(12 * kMs); });
  EXPECT_THAT(status.error().line(), HasSubstr("ms, at most 10 ms were allowed"));
}

// The watcher is late by the time for which the process was stopped.
TEST(PluginDeadline, APauseOfTheProcessIsNoFault) {
  PluginCalls calls;
  StrategyBase strategy = strategy_of("cache", 20 * kMs, &calls);
  calls.tick();
  EXPECT_TRUE(call(strategy, [] { sleep(600 * kMs); }).ok()) << "there was no tick";
  EXPECT_TRUE(call(strategy, [&] {
                sleep(300 * kMs);
                const auto running = calls.running();
                ASSERT_TRUE(running);
                EXPECT_LT(running->ns, 250 * kMs);
                calls.tick();
              }).ok());
  std::atomic<bool> ends = false;
  std::thread watcher([&] {
    while (!ends) calls.tick(), sleep(kMs);
  });
  EXPECT_FALSE(call(strategy, [] { sleep(600 * kMs); }).ok()) << "the watcher was awake";
  ends = true;
  watcher.join();
}

// Too little memory is not a fault of a predictor or quantizer.
TEST(PluginDeadline, ShortMemoryIsNoFaultOfAPredictor) {
  for (const char* kind : {"predictor", "quantizer", "cache"}) {
    StrategyBase strategy = strategy_of(kind, kNoPluginDeadline);
    const std::string words = "lacks 3 MiB";
    strategy.last_words = &words;
    const Status status = call(
        strategy, [] {}, TIERD_E_NO_SPACE);
    const bool is_fault = kind == std::string("cache");
    EXPECT_EQ(status.code(), is_fault ? Code::plugin_fault : Code::no_space);
    EXPECT_THAT(status.error().line(), StartsWith(std::string(kind) + " 'test': admit: "));
    EXPECT_THAT(status.error().line(), HasSubstr(words));
    EXPECT_EQ(strategy.quarantined(), is_fault);
  }
}

}  // namespace
}  // namespace tierd
