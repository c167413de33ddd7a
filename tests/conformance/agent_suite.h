// What every agent must do, whatever its memory is. A test program of an agent includes this file and
// instantiates the suite with worlds around its agent:
//   INSTANTIATE_TEST_SUITE_P(Null, AgentConformance, testing::Values(AgentCase{"null", make_null_world}),
//   case_name);
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/kernel/agent.h"

namespace tierd {

// An agent with what it needs to live, and messages for it.
class AgentWorld {
 public:
  virtual ~AgentWorld() = default;
  virtual Agent& agent() = 0;
  // A message with work, which ends ok; with an id of its own.
  virtual Message work() = 0;
  // A message of this op that names `target` (cancel), or nothing (stop, stats).
  virtual Message control(Op op, const MessageId& target) = 0;
  // The message has completed: its lists and data may be looked at and used again.
  virtual void completed(const Message& message, const Done& done) = 0;
};

struct AgentCase {
  std::string name;
  std::function<std::unique_ptr<AgentWorld>(uint64_t seed)> make;
};
inline std::string case_name(const testing::TestParamInfo<AgentCase>& info) {
  return info.param.name;
}

class AgentConformance : public testing::TestWithParam<AgentCase> {
 protected:
  static constexpr uint64_t kSeeds = 4;

  // The kernel's side: remembers what was accepted and checks each completion against it.
  struct Kernel {
    explicit Kernel(AgentWorld& of) : world(of) {}
    bool submit(const Message& message) {
      if (world.agent().submit(message) == Submit::busy) return false;
      EXPECT_TRUE(open.emplace(key(message.id), message).second);
      return true;
    }
    size_t poll(size_t room) {
      std::vector<Done> done(room);
      const size_t n = world.agent().poll(done);
      EXPECT_LE(n, room);
      for (size_t i = 0; i < n; ++i) {
        const auto found = open.find(key(done[i].id));
        EXPECT_NE(found, open.end()) << "a completion that nobody waits for";
        if (found == open.end()) continue;
        EXPECT_EQ(done[i].engine, found->second.engine);
        EXPECT_LE(done[i].start_ns, done[i].done_ns);
        world.completed(found->second, done[i]);
        order.push_back(done[i]);
        open.erase(found);
      }
      return n;
    }
    // Until nothing is open; parks on the agent's descriptor whenever it is idle, so that a lost wake-up
    // hangs.
    void drain(size_t room = 16) {
      Agent& agent = world.agent();
      while (!open.empty()) {
        const Drive drive = agent.drive();
        if (poll(room) != 0 || drive == Drive::busy || open.empty()) continue;
        ASSERT_TRUE(agent.waiting()) << "idle, nothing awaited, and yet " << open.size() << " open";
        pollfd ready = {.fd = agent.wait_fd(), .events = POLLIN, .revents = 0};
        ASSERT_EQ(::poll(&ready, 1, 60'000), 1) << "no completion showed on the descriptor";
      }
    }
    static uint64_t key(const MessageId& id) { return uint64_t{id.slot} << 32 | id.generation; }

    AgentWorld& world;
    std::map<uint64_t, Message> open;
    std::vector<Done> order;
  };
};

TEST_P(AgentConformance, HasNothingToDoAtFirst) {
  const auto world = GetParam().make(1);
  EXPECT_EQ(world->agent().drive(), Drive::idle);
  EXPECT_FALSE(world->agent().waiting());
  std::vector<Done> done(1);
  EXPECT_EQ(world->agent().poll(done), 0u);
  EXPECT_GT(world->agent().credits(), 0u);
  EXPECT_FALSE(world->agent().name().empty());
}

TEST_P(AgentConformance, CompletesEachMessageExactlyOnce) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto world = GetParam().make(seed);
    Kernel kernel(*world);
    Random random(seed);
    size_t accepted = 0;
    while (accepted < 400) {
      if (kernel.open.size() < world->agent().credits()) accepted += kernel.submit(world->work());
      if (random.below(3) == 0) world->agent().drive();
      if (random.below(3) == 0) kernel.poll(random.below(4));
    }
    kernel.drain(1 + random.below(8));
    EXPECT_EQ(kernel.order.size(), accepted);
    for (const Done& done : kernel.order) EXPECT_EQ(done.status, DoneStatus::ok);
    std::vector<Done> more(1);
    EXPECT_EQ(world->agent().poll(more), 0u);
    EXPECT_EQ(world->agent().drive(), Drive::idle);
    EXPECT_FALSE(world->agent().waiting());
  }
}

TEST_P(AgentConformance, IsBusyWithoutCreditAndKeepsNothing) {
  const auto world = GetParam().make(7);
  Kernel kernel(*world);
  for (uint32_t i = 0; i < world->agent().credits(); ++i) ASSERT_TRUE(kernel.submit(world->work()));
  const Message refused = world->work();
  EXPECT_FALSE(kernel.submit(refused));
  // A credit comes back with the polled completion, not before.
  size_t polled = 0;
  while (polled == 0) {
    world->agent().drive();
    EXPECT_FALSE(kernel.submit(refused));
    polled = kernel.poll(1);
  }
  EXPECT_TRUE(kernel.submit(refused));
  kernel.drain();
  EXPECT_EQ(kernel.order.size(), world->agent().credits() + 1);
}

TEST_P(AgentConformance, CancelOfSomethingUnknownCompletes) {
  const auto world = GetParam().make(3);
  Kernel kernel(*world);
  ASSERT_TRUE(kernel.submit(world->work()));
  ASSERT_TRUE(kernel.submit(world->control(Op::cancel, {.slot = 12345, .generation = 678})));
  kernel.drain();
  for (const Done& done : kernel.order) EXPECT_EQ(done.status, DoneStatus::ok);
}

TEST_P(AgentConformance, StopComesAfterEverythingBeforeIt) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto world = GetParam().make(seed);
    Kernel kernel(*world);
    for (uint32_t i = 1; i < world->agent().credits(); ++i) ASSERT_TRUE(kernel.submit(world->work()));
    const Message stop = world->control(Op::stop, {});
    ASSERT_TRUE(kernel.submit(stop));
    kernel.drain();
    EXPECT_EQ(kernel.order.back().id, stop.id);
    EXPECT_EQ(kernel.order.back().status, DoneStatus::ok);
  }
}

TEST_P(AgentConformance, ServiceTimeIsPure) {
  const auto world = GetParam().make(5);
  const Message message = world->work();
  const uint64_t before = world->agent().service_ns(message);
  Kernel kernel(*world);
  ASSERT_TRUE(kernel.submit(message));
  EXPECT_EQ(world->agent().service_ns(message), before);
  kernel.drain();
}

}  // namespace tierd
