#include "core/kernel/post/dispatcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "tests/kernel/completion_log.h"

namespace tierd {
namespace {

// Accepts as scripted, completes the messages that the test names, and records what it receives.
class ScriptedAgent final : public Agent {
 public:
  explicit ScriptedAgent(uint32_t credits) : credits_(credits) {}
  std::string_view name() const override { return "scripted"; }
  uint32_t credits() const override { return credits_; }
  Submit submit(const Message& message, const Payload& payload) override {
    if (refuse > 0) {
      --refuse;
      return Submit::busy;
    }
    EXPECT_LT(open.size(), credits_) << "sent without a credit";
    if (message.op == Op::cancel || message.op == Op::raise) {
      controls.emplace_back(message.op, message.about);
    } else {
      accepted.push_back(message);
      payloads.push_back(payload);
    }
    open.push_back(message);
    return Submit::ok;
  }
  Drive drive() override { return Drive::idle; }
  size_t poll(std::span<Done> done) override {
    const size_t n = std::min(done.size(), ready.size());
    for (size_t i = 0; i < n; ++i) {
      done[i] = ready.front();
      ready.pop_front();
    }
    return n;
  }

  void complete(MessageId id, DoneStatus status = DoneStatus::ok) {
    const auto found = std::find_if(open.begin(), open.end(), [&](const Message& m) { return m.id == id; });
    ASSERT_NE(found, open.end());
    Done done;
    done.id = id;
    done.status = status;
    ready.push_back(done);
    open.erase(found);
  }
  void complete_all() {
    while (!open.empty()) complete(open.front().id);
  }

  int refuse = 0;
  std::vector<Message> accepted;
  std::vector<Payload> payloads;  // of `accepted`
  std::vector<std::pair<Op, MessageId>> controls;
  std::vector<Message> open;
  std::deque<Done> ready;

 private:
  uint32_t credits_;
};

class WallWorld {
 public:
  explicit WallWorld(uint32_t credits, uint32_t messages = 64, std::optional<uint64_t> seed = {})
      : agent(credits), dispatcher(pools_, clock_, waiter_, options(messages, seed)) {
    dispatcher.add_agent(agent);
  }
  MessageId post(const std::string& name, Priority priority, std::span<const Unit> units = {}) {
    Message message;
    message.agent = 1;
    message.priority = priority;
    const MessageId id = dispatcher.post(message, {.units = units}, log);
    log.names[CompletionLog::key(id)] = name;
    return id;
  }
  std::string accepted() {
    std::string text;
    for (const Message& m : agent.accepted) text += log.names[CompletionLog::key(m.id)];
    return text;
  }

 private:
  static Dispatcher::Options options(uint32_t messages, std::optional<uint64_t> seed) {
    Dispatcher::Options options;
    options.max_messages = messages;
    options.max_units = 8;
    options.shuffle_seed = seed;
    return options;
  }
  PoolTable pools_;
  WallClock clock_;
  Waiter waiter_;

 public:
  CompletionLog log;
  ScriptedAgent agent;
  Dispatcher dispatcher;
};

TEST(Dispatcher, SendsByPriorityThenInOrderAsCreditsAllow) {
  WallWorld world(2);
  world.post("m", Priority::migration);
  world.post("p", Priority::prefetch);
  world.post("d", Priority::demand);
  world.post("q", Priority::prefetch);
  world.post("e", Priority::demand);
  world.dispatcher.turn();
  EXPECT_EQ(world.accepted(), "de");
  world.dispatcher.turn();
  EXPECT_EQ(world.accepted(), "de");
  while (world.dispatcher.in_flight() != 0) {
    world.agent.complete_all();
    world.dispatcher.turn();
  }
  EXPECT_EQ(world.accepted(), "depqm");
  for (const auto& [name, times] : world.log.count) EXPECT_EQ(times, 1) << name;
}

TEST(Dispatcher, WhoIsWokenGoesOnOnceWhenTheTurnHasDeliveredEverything) {
  WallWorld world(4);
  Notice notice;
  std::vector<size_t> delivered;
  const auto waits = [](Notice& n, const CompletionLog& log, std::vector<size_t>& seen) -> Task<int> {
    for (;;) {
      co_await n;
      seen.push_back(log.lines.size());
    }
  };
  const Task<int> task = waits(notice, world.log, delivered);
  world.log.react = [&](const std::string&) { world.dispatcher.wake(notice); };
  for (const char* name : {"a", "b", "c"}) world.post(name, Priority::demand);
  world.dispatcher.turn();
  EXPECT_TRUE(delivered.empty());
  world.agent.complete(world.agent.open[0].id);
  world.agent.complete(world.agent.open[1].id);
  world.dispatcher.turn();
  EXPECT_EQ(delivered, std::vector<size_t>{2});
  world.dispatcher.turn();  // nothing completes
  world.agent.complete_all();
  world.dispatcher.turn();
  EXPECT_EQ(delivered, (std::vector<size_t>{2, 3}));
}

TEST(Dispatcher, NothingSlipsPastARefusedDemand) {
  WallWorld world(4);
  world.post("p", Priority::prefetch);
  world.post("d", Priority::demand);
  world.agent.refuse = 1;
  world.dispatcher.turn();
  EXPECT_EQ(world.accepted(), "");
  world.dispatcher.turn();
  EXPECT_EQ(world.accepted(), "dp");
}

TEST(Dispatcher, UnitsAreKeptUntilTheCompletionAndRowsAreTheCallers) {
  WallWorld world(1);
  std::vector<Unit> units = {{7, 70}, {9, 90}};
  const std::vector<RowInfo> rows(3);
  const std::vector<uint64_t> masks(5);
  Message message;
  message.agent = 1;
  message.rows = 3;
  world.dispatcher.post(message, {.units = units, .rows = rows, .masks = masks}, world.log);
  units = {{1, 2}};
  world.post("b", Priority::demand, units);
  world.dispatcher.turn();
  const Payload& payload = world.agent.payloads.at(0);
  EXPECT_TRUE(std::ranges::equal(payload.units, std::vector<Unit>{{7, 70}, {9, 90}}));
  EXPECT_EQ(payload.rows.data(), rows.data());
  EXPECT_EQ(payload.masks.data(), masks.data());
}

TEST(Dispatcher, CancelsWhatWaitsAtOnceAndAdvisesAboutTheRest) {
  WallWorld world(2);
  const MessageId sent = world.post("a", Priority::prefetch);
  world.post("b", Priority::prefetch);
  world.dispatcher.turn();
  const MessageId waiting = world.post("c", Priority::prefetch);
  world.dispatcher.cancel(waiting);
  world.dispatcher.cancel(sent);
  EXPECT_EQ(world.log.lines.size(), 0u);  // completions are delivered in a turn, never inside the call
  world.dispatcher.turn();
  EXPECT_EQ(world.log.count["c"], 1);
  world.agent.complete(world.agent.accepted[1].id);  // frees a credit for the advice
  world.dispatcher.turn();
  world.dispatcher.turn();
  ASSERT_EQ(world.agent.controls.size(), 1u);
  EXPECT_EQ(world.agent.controls[0], std::pair(Op::cancel, sent));
  world.agent.complete(sent, DoneStatus::cancelled);
  world.agent.complete_all();
  world.dispatcher.turn();
  EXPECT_EQ(world.dispatcher.in_flight(), 0u);
  EXPECT_EQ(world.accepted(), "ab");
  world.dispatcher.cancel(sent);  // completed long ago
  world.dispatcher.turn();
  EXPECT_EQ(world.dispatcher.in_flight(), 0u);
}

TEST(Dispatcher, RaisesWhatWaitsAndAdvisesAboutTheRest) {
  WallWorld world(1);
  const MessageId sent = world.post("a", Priority::prefetch);
  world.dispatcher.turn();
  world.post("p", Priority::prefetch);
  const MessageId raised = world.post("q", Priority::prefetch);
  world.dispatcher.raise(raised, Priority::demand);
  world.dispatcher.raise(raised, Priority::migration);  // never lowers
  world.dispatcher.raise(sent, Priority::demand);
  world.dispatcher.raise(sent, Priority::demand);  // sent to the agent once
  while (world.dispatcher.in_flight() != 0) {
    world.agent.complete_all();
    world.dispatcher.turn();
  }
  EXPECT_EQ(world.accepted(), "aqp");
  ASSERT_EQ(world.agent.controls.size(), 1u);
  EXPECT_EQ(world.agent.controls[0], std::pair(Op::raise, sent));
}

TEST(Dispatcher, AdviceIsDroppedWhenNoEntryIsFree) {
  WallWorld world(4, 2);
  const MessageId a = world.post("a", Priority::prefetch);
  world.post("b", Priority::prefetch);
  world.dispatcher.turn();
  EXPECT_FALSE(world.dispatcher.can_post());
  world.dispatcher.cancel(a);
  world.dispatcher.raise(a, Priority::demand);
  world.dispatcher.turn();
  EXPECT_TRUE(world.agent.controls.empty());
  world.agent.complete_all();
  world.dispatcher.turn();
  EXPECT_TRUE(world.dispatcher.can_post());
  EXPECT_EQ(world.dispatcher.in_flight(), 0u);
}

// Posts, cancels and raises at random. Each request completes once, and every credit is returned.
TEST(Dispatcher, EveryRequestCompletesOnceWhateverTheShuffle) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    WallWorld world(3, 32, seed);
    Random random(seed);
    std::vector<MessageId> ids;
    uint32_t posted = 0;
    for (int round = 0; round < 2000; ++round) {
      if (world.dispatcher.can_post() && random.below(2) == 0) {
        ids.push_back(world.post(std::to_string(posted++), static_cast<Priority>(random.below(3))));
      }
      if (!ids.empty() && random.below(8) == 0) {
        world.dispatcher.cancel(ids[random.below(static_cast<uint32_t>(ids.size()))]);
      }
      if (!ids.empty() && random.below(8) == 0) {
        world.dispatcher.raise(ids[random.below(static_cast<uint32_t>(ids.size()))], Priority::demand);
      }
      if (!world.agent.open.empty() && random.below(3) == 0) {
        world.agent.complete(
            world.agent.open[random.below(static_cast<uint32_t>(world.agent.open.size()))].id);
      }
      world.dispatcher.turn();
    }
    for (int round = 0; round < 10000 && world.dispatcher.in_flight() != 0; ++round) {
      world.agent.complete_all();
      world.dispatcher.turn();
    }
    EXPECT_EQ(world.dispatcher.in_flight(), 0u);
    EXPECT_EQ(world.log.count.size(), posted);
    for (const auto& [name, times] : world.log.count) EXPECT_EQ(times, 1) << name;
    // All credits are free, so that many messages go out in one turn.
    world.agent.accepted.clear();
    for (int i = 0; i < 5; ++i) world.post("z", Priority::demand);
    world.dispatcher.turn();
    EXPECT_EQ(world.agent.accepted.size(), 3u);
    world.agent.complete_all();
    for (int i = 0; i < 100; ++i) {
      world.dispatcher.turn();
      world.agent.complete_all();
    }
    EXPECT_EQ(world.dispatcher.in_flight(), 0u);
  }
}

}  // namespace
}  // namespace tierd
