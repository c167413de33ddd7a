#include "core/agent/agent_thread.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

#include "core/base/random.h"
#include "core/kernel/post/clocks.h"
#include "core/kernel/post/dispatcher.h"
#include "tests/tier/conform/agent_cases.h"
#include "tiers/null/null_agent.h"

namespace tierd {
namespace {

Message numbered(uint32_t slot) {
  Message message;
  message.id = {slot, 1};
  return message;
}

class ThreadWorld final : public AgentWorld {
 public:
  explicit ThreadWorld(uint64_t spin_ns) : thread_(agent_, {.core = {}, .spin_ns = spin_ns}) {}
  Agent& agent() override { return thread_; }
  Request work() override { return control(Op::run, {}); }
  Request control(Op op, const MessageId& about) override {
    Request request{numbered(next_++)};
    request.message.op = op;
    request.message.about = about;
    return request;
  }
  std::string completed(const Message&, const Done&) override { return ""; }
  std::string trespass() override { return ""; }

 private:
  NullAgent agent_{8};
  AgentThread thread_;
  uint32_t next_ = 0;
};

std::vector<AgentRuleCase> thread_cases() {
  const auto world = [](uint64_t spin_ns) {
    return [spin_ns](uint64_t) -> Result<std::unique_ptr<AgentWorld>> {
      return std::unique_ptr<AgentWorld>(std::make_unique<ThreadWorld>(spin_ns));
    };
  };
  return rule_cases({{"parks", world(0)}, {"spins", world(50'000)}});
}
INSTANTIATE_TEST_SUITE_P(Thread, AgentConformance, testing::ValuesIn(thread_cases()), case_name);

// Bursts with pauses, so that the thread parks and is woken again and again. A caller that sleeps on the
// descriptor must be woken for every completion.
TEST(AgentThread, LosesNoWakeUpAndDeliversOnce) {
  for (const uint64_t spin_ns : {0u, 20'000u}) {
    NullAgent agent(4);
    AgentThread thread(agent, {.core = {}, .spin_ns = spin_ns});
    Random random(9);
    std::set<uint32_t> open;
    uint32_t next = 0;
    std::array<Done, 4> done;
    constexpr uint32_t kRequests = 20'000;
    while (next < kRequests || !open.empty()) {
      for (uint32_t burst = random.below(4); burst > 0 && next < kRequests; --burst) {
        if (thread.submit(numbered(next), {}) != Submit::ok) break;
        open.insert(next++);
      }
      thread.drive();
      for (size_t n = thread.poll(done); n > 0; n = thread.poll(done)) {
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(open.erase(done[i].id.slot), 1u);
      }
      if (open.empty() || random.below(2) == 0) continue;
      pollfd ready = {.fd = thread.wait_fd(), .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&ready, 1, 60'000), 1) << "nobody was woken";
    }
    EXPECT_FALSE(thread.waiting());
  }
}

// A descriptor that stays readable after polling would keep the kernel from sleeping.
TEST(AgentThread, TheDescriptorIsQuietWhenAllIsPolled) {
  NullAgent agent(4);
  AgentThread thread(agent, {.core = {}, .spin_ns = 0});
  std::array<Done, 4> done;
  for (uint32_t i = 0; i < 5'000; ++i) {
    ASSERT_EQ(thread.submit(numbered(i), {}), Submit::ok);
    thread.drive();
    while (thread.poll(done) == 0) {
    }
    // The signal may be written a moment after the completion. Then one poll clears it for good.
    pollfd ready = {.fd = thread.wait_fd(), .events = POLLIN, .revents = 0};
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    for (int polls = 0; ::poll(&ready, 1, 0) != 0; ++polls) {
      ASSERT_LT(polls, 1000) << "it stays readable";
      ASSERT_EQ(thread.poll(done), 0u);
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

// Destroying the thread ends requests that are queued or running.
TEST(AgentThread, EndsWithRequestsInIt) {
  for (uint32_t round = 0; round < 300; ++round) {
    NullAgent agent(8);
    AgentThread thread(agent, {.core = {}, .spin_ns = round % 2 == 0 ? 0u : 20'000u});
    for (uint32_t i = 0; i < round % 9; ++i) thread.submit(numbered(i), {});
    if (round % 3 != 0) thread.drive();
  }
}

// Waking at the first of several messages would take the core from the caller that submits the others.
TEST(AgentThread, IsWokenOnceForAllThatWasSubmitted) {
  NullAgent agent(8);
  AgentThread thread(agent, {.core = {}, .short_slices = true, .spin_ns = 0});
  std::array<Done, 8> done;
  for (uint32_t round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the thread parks
    const uint64_t before = thread.wake_ups();
    for (uint32_t i = 0; i < 5; ++i) ASSERT_EQ(thread.submit(numbered(i), {}), Submit::ok);
    EXPECT_EQ(thread.wake_ups(), before);
    EXPECT_EQ(thread.drive(), Drive::idle);
    EXPECT_LE(thread.wake_ups(), before + 1);
    EXPECT_EQ(thread.drive(), Drive::idle);
    EXPECT_LE(thread.wake_ups(), before + 1);
    while (thread.waiting()) (void)thread.poll(done);
  }
}

// An agent whose device still writes for some turns after the last message.
class SlowToEnd final : public Agent {
 public:
  explicit SlowToEnd(uint32_t turns) : turns_(turns) {}
  ~SlowToEnd() override { EXPECT_FALSE(waiting()) << "memory is given back that a device writes to"; }

  std::string_view name() const override { return "slow"; }
  uint32_t credits() const override { return 1; }
  Submit submit(const Message&, const Payload&) override {
    driver_ = std::this_thread::get_id();
    left_ = turns_;
    asked_ = true;
    return Submit::ok;
  }
  Drive drive() override {
    if (left_ == 0) return Drive::idle;
    EXPECT_EQ(std::this_thread::get_id(), driver_);
    --left_;
    return Drive::idle;
  }
  size_t poll(std::span<Done>) override { return 0; }
  bool waiting() const override { return left_ != 0; }
  bool asked() const { return asked_; }

 private:
  const uint32_t turns_;
  std::atomic<bool> asked_{false};
  std::atomic<uint32_t> left_{0};
  std::thread::id driver_;
};

// A device signals only the thread that drives it, so only that thread can wait for what is in flight.
TEST(AgentThread, WaitsInItsOwnThreadForWhatADeviceStillWrites) {
  for (uint32_t turns = 1; turns < 200; ++turns) {
    SlowToEnd agent(turns);
    AgentThread thread(agent, {.core = {}, .spin_ns = 0});
    ASSERT_EQ(thread.submit(numbered(0), {}), Submit::ok);
    thread.drive();
    while (!agent.asked()) std::this_thread::yield();
  }
}

// An agent that fails at a given message: it throws, or does not return before it is released.
class Failing final : public Agent {
 public:
  Failing(uint32_t at, bool throws) : at_(at), throws_(throws) {}
  std::string_view name() const override { return "failing"; }
  uint32_t credits() const override { return agent_.credits(); }
  Submit submit(const Message& message, const Payload& payload) override {
    if (++sent_ == at_ && throws_) throw std::runtime_error("broken");
    return agent_.submit(message, payload);
  }
  Drive drive() override {
    while (sent_ >= at_ && !throws_ && !let_go_) std::this_thread::yield();
    return agent_.drive();
  }
  size_t poll(std::span<Done> done) override { return agent_.poll(done); }
  void let_go() { let_go_ = true; }

 private:
  NullAgent agent_{8};
  uint32_t at_;
  bool throws_;
  uint32_t sent_ = 0;
  std::atomic<bool> let_go_{false};
};

// Polls until nothing is open. Returns the number of messages completed as lost.
uint32_t lost_of(AgentThread& thread) {
  std::array<Done, 3> done;
  uint32_t lost = 0;
  thread.drive();
  while (thread.waiting()) {
    const size_t n = thread.poll(done);
    for (size_t i = 0; i < n; ++i) lost += done[i].status == DoneStatus::lost ? 1 : 0;
  }
  return lost;
}

TEST(AgentThread, WhatItThrowsLosesTheAgent) {
  Failing agent(6, true);
  AgentThread thread(agent, {});
  for (uint32_t i = 0; i < 5; ++i) ASSERT_EQ(thread.submit(numbered(i), {}), Submit::ok);
  EXPECT_EQ(lost_of(thread), 0u);
  EXPECT_EQ(thread.lost_because(), "");
  for (uint32_t i = 5; i < 9; ++i) ASSERT_EQ(thread.submit(numbered(i), {}), Submit::ok);
  EXPECT_EQ(lost_of(thread), 4u);
  EXPECT_EQ(thread.lost_because(), "its thread has ended: broken");
  ASSERT_EQ(thread.submit(numbered(9), {}), Submit::ok);
  EXPECT_EQ(lost_of(thread), 1u) << "and so is all that it is sent later";
  EXPECT_FALSE(thread.is_stuck());
}

TEST(AgentThread, WhoAnswersNothingForTooLongIsLost) {
  // An agent that is left behind is never destroyed.
  static auto& agent = *new Failing(3, false);
  static auto& thread = *new AgentThread(agent, {.core = {}, .deadline_ns = 50'000'000});
  for (uint32_t i = 0; i < 2; ++i) ASSERT_EQ(thread.submit(numbered(i), {}), Submit::ok);
  EXPECT_EQ(lost_of(thread), 0u);
  std::this_thread::sleep_for(std::chrono::milliseconds(80));  // idle time is not a delay
  for (uint32_t i = 2; i < 6; ++i) ASSERT_EQ(thread.submit(numbered(i), {}), Submit::ok);
  EXPECT_EQ(lost_of(thread), 4u);
  EXPECT_EQ(thread.lost_because(), "it has answered nothing for 0.05 s");
  EXPECT_TRUE(thread.is_stuck());
  ASSERT_EQ(thread.submit(numbered(6), {}), Submit::ok);
  EXPECT_EQ(lost_of(thread), 1u);
  // The stuck call may return later and then the thread ends. Its completions are discarded.
  thread.leave_behind();
  agent.let_go();
  while (thread.is_stuck()) std::this_thread::yield();
  EXPECT_EQ(thread.lost_because(), "it has answered nothing for 0.05 s");
}

// The deadline does not run while the process is stopped.
TEST(AgentThread, APauseOfTheProcessIsNoDelay) {
  static auto& agent = *new Failing(1, false);
  static auto& thread = *new AgentThread(agent, {.core = {}, .deadline_ns = 2'000'000'000});
  ASSERT_EQ(thread.submit(numbered(0), {}), Submit::ok);
  std::this_thread::sleep_for(std::chrono::milliseconds(3'000));
  Done done;
  EXPECT_EQ(thread.poll({&done, 1}), 0u);
  EXPECT_EQ(lost_of(thread), 1u);
  EXPECT_EQ(thread.lost_because(), "it has answered nothing for 2 s");
  thread.leave_behind();
  agent.let_go();
}

TEST(AgentThread, CarriesTheMessagesOfADispatcher) {
  NullAgent here(8), there(8);
  AgentThread thread(there, {.core = {}, .spin_ns = 0});
  PoolTable pools;
  Dispatcher::Options options;
  options.max_messages = 32;
  options.max_units = 4;
  WallClock clock;
  Waiter waiter;
  Dispatcher dispatcher(pools, clock, waiter, options);
  dispatcher.add_agent(here);
  dispatcher.add_agent(thread);
  struct Count final : CompletionSink {
    void on_done(const Message&, const Done&) override { ++n; }
    int n = 0;
  } count;
  constexpr int kMessages = 5'000;
  Random random(4);
  for (int posted = 0; posted < kMessages || dispatcher.in_flight() > 0;) {
    while (posted < kMessages && dispatcher.can_post() && random.below(3) != 0) {
      Message message;
      message.agent = static_cast<uint16_t>(1 + random.below(2));
      dispatcher.post(message, {}, count);
      ++posted;
    }
    if (!dispatcher.turn()) dispatcher.wait();
  }
  EXPECT_EQ(count.n, kMessages);
}

}  // namespace
}  // namespace tierd
