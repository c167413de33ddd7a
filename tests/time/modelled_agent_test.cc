// Virtual time. The comment of each test has its timeline, computed by hand.
#include "core/time/modelled_agent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "tests/kernel/completion_log.h"
#include "tiers/null/null_agent.h"

namespace tierd {
namespace {

// The duration of a message is its `site`.
class ToldLength final : public Cost {
 public:
  uint64_t ns(const Message& message, const Payload&, bool) const override { return message.site; }
};

Dispatcher::Options options() {
  Dispatcher::Options options;
  options.max_messages = 64;
  options.max_units = 8;
  return options;
}

class ModelledWorld {
 public:
  explicit ModelledWorld(uint32_t credits = 16)
      : null_disk_(credits),
        null_cpu_(credits),
        disk_(null_disk_, length_, clock_),
        cpu_(null_cpu_, length_, clock_),
        dispatcher_(pools_, clock_, waiter_, options()) {
    EXPECT_EQ(dispatcher_.add_agent(disk_), 1);
    EXPECT_EQ(dispatcher_.add_agent(cpu_), 2);
  }
  MessageId post(const std::string& name, uint16_t agent, Priority priority, uint32_t length,
                 uint8_t lane = 0, Op op = Op::read, MessageId about = {}) {
    Message message;
    message.op = op;
    message.about = about;
    message.agent = agent;
    message.lane = lane;
    message.priority = priority;
    message.site = length;
    const MessageId id = dispatcher_.post(message, {}, log);
    log.names[CompletionLog::key(id)] = name;
    return id;
  }
  void run() {
    while (dispatcher_.turn() || dispatcher_.wait()) {
    }
    EXPECT_EQ(dispatcher_.in_flight(), 0u);
  }
  Dispatcher& dispatcher() { return dispatcher_; }
  CompletionLog log;

 private:
  const ToldLength length_;
  VirtualClock clock_;
  NullAgent null_disk_;
  NullAgent null_cpu_;
  ModelledAgent disk_;
  ModelledAgent cpu_;
  PoolTable pools_;
  Waiter waiter_;
  Dispatcher dispatcher_;
};

using Lines = std::vector<std::string>;

// Moves of 50 alternate with a disk that reads for 100 from 0 on: 100-150, 150-200; a run beside them 0-30.
TEST(ModelledAgents, WhatTakesTurnsWithTheDiskWaitsForIt) {
  class Moves final : public Cost {
   public:
    uint64_t ns(const Message& message, const Payload&, bool) const override { return message.site; }
    bool takes_turns_with_disk(const Message& message) const override { return message.op == Op::move; }
  };
  const Moves cost;
  VirtualClock clock;
  VirtualThread disk;
  NullAgent idle(8);
  ModelledAgent agent(idle, cost, clock, nullptr, &disk);
  EXPECT_EQ(disk.begin(0, 100), 0u);
  PoolTable pools;
  Waiter waiter;
  Dispatcher dispatcher(pools, clock, waiter, options());
  dispatcher.add_agent(agent);
  CompletionLog log;
  const auto post = [&](const std::string& name, Op op, uint32_t length, uint8_t lane) {
    Message message;
    message.op = op;
    message.agent = 1;
    message.lane = lane;
    message.site = length;
    log.names[CompletionLog::key(dispatcher.post(message, {}, log))] = name;
  };
  post("a", Op::move, 50, 1);
  post("b", Op::move, 50, 1);
  post("run", Op::run, 30, 0);
  while (dispatcher.turn() || dispatcher.wait()) {
  }
  EXPECT_EQ(log.lines, (Lines{"run@0-30", "a@100-150", "b@150-200"}));
}

// Runs of 30 ns take 60 after their thread was idle for two milliseconds: a at 2 ms, but not b behind it. A
// cost without such a time adds none.
TEST(ModelledAgents, ACostIsToldWhetherItsThreadHasWaited) {
  class Runs final : public Cost {
   public:
    uint64_t ns(const Message&, const Payload&, bool after_wait) const override {
      return after_wait ? 60 : 30;
    }
    uint64_t wait_ns() const override { return 2'000'000; }
  };
  const Runs cost;
  VirtualClock clock;
  VirtualThread thread;
  NullAgent idle(8);
  ModelledAgent agent(idle, cost, clock, &thread);
  PoolTable pools;
  Waiter waiter;
  clock.at(2'000'000);
  EXPECT_TRUE(clock.wait(waiter));
  Dispatcher dispatcher(pools, clock, waiter, options());
  dispatcher.add_agent(agent);
  CompletionLog log;
  for (const std::string name : {"a", "b"}) {
    Message message;
    message.op = Op::run;
    message.agent = 1;
    log.names[CompletionLog::key(dispatcher.post(message, {}, log))] = name;
  }
  while (dispatcher.turn() || dispatcher.wait()) {
  }
  EXPECT_EQ(log.lines, (Lines{"a@2000000-2000060", "b@2000060-2000090"}));
}

// Two layers on a modelled machine. Disk: a read takes 100. CPU: compute of a layer takes 60.
//   0      demand a (100) and prefetches b, c, d (100 each) are posted
//   100    a ends: compute A 100-160; b has begun, 100-200
//   160    A ends: layer 2 needs e, which was not prefetched (demand, 100), and no longer c
//          b runs until 200, c is cancelled at 160, e overtakes d: 200-300, d 300-400
//   300    e ends: compute E 300-360
// Makespan 400.
TEST(ModelledAgents, MakespanWithPrefetchesAnOvertakingDemandAndACancellation) {
  // The prefetches are equal, so their order changes only names. All orders are tried.
  const std::vector<std::string> prefetches = {"b", "c", "d"};
  std::vector<size_t> order = {0, 1, 2};
  do {
    for (size_t demand_at = 0; demand_at <= 3; ++demand_at) {
      ModelledWorld world;
      std::vector<std::pair<std::string, MessageId>> ids;
      for (size_t i = 0; i <= 3; ++i) {
        if (i == demand_at) world.post("a", 1, Priority::demand, 100);
        if (i < 3) {
          const std::string& name = prefetches[order[i]];
          ids.emplace_back(name, world.post(name, 1, Priority::prefetch, 100));
        }
      }
      world.log.react = [&](const std::string& name) {
        if (name == "a") world.post("A", 2, Priority::demand, 60, 1);
        if (name == "A") {
          // in either order
          if (demand_at % 2 == 0) world.post("e", 1, Priority::demand, 100);
          world.dispatcher().cancel(ids[1].second);
          if (demand_at % 2 == 1) world.post("e", 1, Priority::demand, 100);
        }
        if (name == "e") world.post("E", 2, Priority::demand, 60, 1);
      };
      world.run();
      const std::string first = ids[0].first, dropped = ids[1].first, last = ids[2].first;
      EXPECT_EQ(world.log.lines, (Lines{"a@0-100", "A@100-160", dropped + "x160", first + "@100-200",
                                        "e@200-300", "E@300-360", last + "@300-400"}));
      EXPECT_EQ(world.dispatcher().now_ns(), 400u);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// At 50 (end of A on the CPU) a started and a waiting prefetch are cancelled. The started one continues.
TEST(ModelledAgents, CancelOfAStartedRequestIsOnlyAdvice) {
  ModelledWorld world;
  const MessageId started = world.post("p", 1, Priority::prefetch, 100);
  const MessageId waiting = world.post("q", 1, Priority::prefetch, 100);
  world.post("A", 2, Priority::demand, 50, 1);
  world.log.react = [&](const std::string& name) {
    if (name != "A") return;
    world.dispatcher().cancel(started);
    world.dispatcher().cancel(waiting);
    world.dispatcher().cancel(waiting);  // a second cancel has no effect
    world.dispatcher().cancel({1234, 5});
    world.dispatcher().raise(waiting, Priority::demand);
  };
  world.run();
  EXPECT_EQ(world.log.lines, (Lines{"A@0-50", "qx50", "p@0-100"}));
}

// With one credit the requests wait in the kernel; order and makespan are the same. With two, both credits
// are in use at 50, so the advice waits for one behind the demands, and q is cancelled after these.
TEST(ModelledAgents, CreditsDoNotChangeWhoGoesFirst) {
  for (const uint32_t credits : {1u, 2u, 16u}) {
    ModelledWorld world(credits);
    world.post("p", 1, Priority::prefetch, 100);
    const MessageId q = world.post("q", 1, Priority::prefetch, 100);
    const MessageId r = world.post("r", 1, Priority::prefetch, 100);
    world.post("A", 2, Priority::demand, 50, 1);
    world.log.react = [&](const std::string& name) {
      if (name != "A") return;
      world.post("d", 1, Priority::demand, 10);
      world.dispatcher().raise(r, Priority::demand);
      world.dispatcher().cancel(q);
    };
    world.run();
    // With a credit for each, r reaches the disk before d. In the kernel's list d is before or behind the
    // raised r: both are demands at 50.
    ASSERT_EQ(world.log.lines.size(), 5u) << credits;
    EXPECT_EQ(world.log.lines[0], "A@0-50") << credits;
    EXPECT_EQ(std::ranges::count(world.log.lines, credits == 2 ? "qx210" : "qx50"), 1) << credits;
    EXPECT_EQ(std::ranges::count(world.log.lines, "p@0-100"), 1) << credits;
    EXPECT_EQ(world.dispatcher().now_ns(), 210u) << credits;
  }
}

// Drawn messages on two lanes of two agents. All are posted at the start, so no lane is ever idle, and each
// ends after the sum of its lengths, whatever the order of the posts.
TEST(ModelledAgents, AnyOrderOfPostsGivesTheSameMakespan) {
  struct Post {
    uint16_t agent;
    uint8_t lane;
    Priority priority;
    uint32_t length;
  };
  std::vector<Post> posts;
  uint64_t sums[2][2] = {};
  uint64_t demand_sums[2][2] = {};
  Random draw(3);
  for (int i = 0; i < 40; ++i) {
    const Post post{static_cast<uint16_t>(1 + draw.below(2)), static_cast<uint8_t>(draw.below(2)),
                    static_cast<Priority>(draw.below(3)), 1 + draw.below(50)};
    posts.push_back(post);
    const uint8_t lane = post.lane;
    sums[post.agent - 1][lane] += post.length;
    if (post.priority == Priority::demand) demand_sums[post.agent - 1][lane] += post.length;
  }
  const uint64_t makespan = std::max({sums[0][0], sums[0][1], sums[1][0], sums[1][1]});
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    for (size_t i = posts.size(); i > 1; --i) {
      std::swap(posts[i - 1], posts[random.below(static_cast<uint32_t>(i))]);
    }
    ModelledWorld world(64);
    struct Last final : CompletionSink {
      void on_done(const Message& message, const Done& done) override {
        const uint8_t lane = message.lane;
        end[message.agent - 1][lane] = done.done_ns;
        if (message.priority == Priority::demand) demand_end[message.agent - 1][lane] = done.done_ns;
      }
      uint64_t end[2][2] = {};
      uint64_t demand_end[2][2] = {};
    } last;
    for (const Post& post : posts) {
      Message message;
      message.agent = post.agent;
      message.lane = post.lane;
      message.priority = post.priority;
      message.site = post.length;
      world.dispatcher().post(message, {}, last);
    }
    world.run();
    EXPECT_EQ(world.dispatcher().now_ns(), makespan);
    for (size_t a = 0; a < 2; ++a) {
      for (size_t e = 0; e < 2; ++e) {
        EXPECT_EQ(last.end[a][e], sums[a][e]);
        EXPECT_EQ(last.demand_end[a][e], demand_sums[a][e]);  // no demand waits for a prefetch
      }
    }
  }
}

TEST(ModelledAgents, LanesWorkSideBySide) {
  // lane 0 of agent 1: a then d; its lane 2: b; lane 0 of agent 2: c
  ModelledWorld world;
  world.post("a", 1, Priority::demand, 30);
  world.post("b", 1, Priority::demand, 10, 2);
  world.post("c", 2, Priority::demand, 20);
  world.post("d", 1, Priority::demand, 5);
  world.run();
  EXPECT_EQ(world.log.lines, (Lines{"b@0-10", "c@0-20", "a@0-30", "d@30-35"}));
}

// Both "a" and "b" end at 10. At the second completion the kernel posts a demand for agent 1, which overtakes
// the waiting prefetch.
TEST(ModelledAgents, ALaneChoosesWhenAllThatEndsThenHasBeenTold) {
  ModelledWorld world;
  world.post("a", 1, Priority::demand, 10);
  world.post("b", 2, Priority::demand, 10);
  world.post("p", 1, Priority::prefetch, 50);
  world.log.react = [&](const std::string& name) {
    if (name == "b") world.post("d", 1, Priority::demand, 5);
  };
  world.run();
  EXPECT_EQ(world.log.lines, (Lines{"a@0-10", "b@0-10", "d@10-15", "p@15-65"}));
}

// All messages have the same agent, on lanes 3 to 7.
TEST(ModelledAgents, EqualTimesComeByPriorityThenId) {
  ModelledWorld world;
  const Priority priorities[] = {Priority::prefetch, Priority::demand, Priority::migration, Priority::demand,
                                 Priority::prefetch};
  for (uint8_t i = 0; i < 5; ++i)
    world.post(std::to_string(i), 1, priorities[i], 10, static_cast<uint8_t>(7 - i));
  world.run();
  EXPECT_EQ(world.log.lines, (Lines{"1@0-10", "3@0-10", "0@0-10", "4@0-10", "2@0-10"}));
}

TEST(ModelledAgents, RaisedGoesFirstAndIsNeverLowered) {
  ModelledWorld world;
  world.post("a", 1, Priority::demand, 10);
  const MessageId b = world.post("b", 1, Priority::prefetch, 10);
  const MessageId c = world.post("c", 1, Priority::migration, 10);
  world.dispatcher().turn();  // the agent has all of them
  world.dispatcher().raise(c, Priority::demand);
  world.dispatcher().raise(b, Priority::migration);
  world.run();
  EXPECT_EQ(world.log.lines, (Lines{"a@0-10", "c@10-20", "b@20-30"}));
}

TEST(ModelledAgents, WorkOfNoLengthEnds) {
  ModelledWorld world;
  for (const char* name : {"a", "b"}) world.post(name, 1, Priority::demand, 0);
  world.post("c", 2, Priority::demand, 0);
  world.run();
  EXPECT_EQ(world.log.lines, (Lines{"a@0-0", "c@0-0", "b@0-0"}));
  EXPECT_EQ(world.dispatcher().now_ns(), 0u);
}

// Two links with a memory between: agent 1 reads for 40 from the store, agent 2 copies for 30.
//   1: a 0-40, b 40-80, c 80-120      2: A 40-70, B 80-110, C 120-150
// With a demand d posted at 70: b has begun, d overtakes c.
//   1: a 0-40, b 40-80, d 80-120, c 120-160     2: A 40-70, B 80-110, D 120-150, C 160-190
TEST(ModelledAgents, MakespanOverTwoLinks) {
  for (const bool overtakes : {false, true}) {
    ModelledWorld world;
    for (const char* name : {"a", "b", "c"}) world.post(name, 1, Priority::prefetch, 40);
    world.log.react = [&](const std::string& name) {
      const bool read = name >= "a";
      if (read) world.post(std::string(1, static_cast<char>(name[0] - 'a' + 'A')), 2, Priority::demand, 30);
      if (name == "A" && overtakes) world.post("d", 1, Priority::demand, 40);
    };
    world.run();
    EXPECT_EQ(world.log.lines,
              overtakes ? (Lines{"a@0-40", "A@40-70", "b@40-80", "B@80-110", "d@80-120", "D@120-150",
                                 "c@120-160", "C@160-190"})
                        : (Lines{"a@0-40", "A@40-70", "b@40-80", "B@80-110", "c@80-120", "C@120-150"}));
    EXPECT_EQ(world.dispatcher().now_ns(), overtakes ? 190u : 150u);
  }
}

// Agent 1 moves (lane 0) and computes (lane 1). All is posted at once, runs behind the moves that they need:
// no run waits until the kernel has received its move's completion.
//   lane 0: a 0-50, b 50-100, c 100-150      lane 1: A behind a 50-70, B behind c 150-170, C 170-190, which
//   names no move and keeps its place
TEST(ModelledAgents, ARunIsBehindItsMove) {
  ModelledWorld world;
  const MessageId a = world.post("a", 1, Priority::demand, 50, 0, Op::move);
  world.post("b", 1, Priority::demand, 50, 0, Op::move);
  const MessageId c = world.post("c", 1, Priority::demand, 50, 0, Op::move);
  world.post("A", 1, Priority::demand, 20, 1, Op::run, a);
  world.post("B", 1, Priority::demand, 20, 1, Op::run, c);
  world.post("C", 1, Priority::demand, 20, 1, Op::run);
  world.run();
  EXPECT_EQ(world.log.lines, (Lines{"a@0-50", "A@50-70", "b@50-100", "c@100-150", "B@150-170", "C@170-190"}));
}

// In one lane the move goes first, whatever its priority. A run behind a cancelled move is cancelled.
//   a 0-50, p 50-100, P 100-120, q cancelled at 0, Q at 120 without an effect
TEST(ModelledAgents, ARunIsBehindItsMoveInOneLane) {
  ModelledWorld world;
  world.post("a", 1, Priority::demand, 50, 0, Op::move);
  const MessageId p = world.post("p", 1, Priority::prefetch, 50, 0, Op::move);
  const MessageId q = world.post("q", 1, Priority::prefetch, 50, 0, Op::move);
  world.post("P", 1, Priority::demand, 20, 0, Op::run, p);
  world.post("Q", 1, Priority::demand, 0, 0, Op::run, q);
  world.dispatcher().turn();
  world.dispatcher().cancel(q);
  world.run();
  EXPECT_EQ(world.log.lines, (Lines{"qx0", "a@0-50", "p@50-100", "P@100-120", "Qx120"}));
}

// Agent 1 has two lanes: 0 moves into its memory, 1 computes. Agent 2 computes a dense segment meanwhile, so
// the link is idle from 50 to 90, when migrations of 30 are posted.
//   1, lane 0: demand a 0-50, migration m 50-80, migration n 80-110
//   1, lane 1: A 50-70, B 110-130      2: dense D 50-90 after a; then demand b for lane 0: n continues, b
//   110-120
TEST(ModelledAgents, MigrationsFillAnIdleWindowAndNoMore) {
  ModelledWorld world;
  world.post("a", 1, Priority::demand, 50);
  world.log.react = [&](const std::string& name) {
    if (name == "a") {
      world.post("A", 1, Priority::demand, 20, 1);
      world.post("D", 2, Priority::demand, 40);
      for (const char* migration : {"m", "n", "o"}) world.post(migration, 1, Priority::migration, 30);
    }
    if (name == "D") world.post("b", 1, Priority::demand, 10);
    if (name == "b") world.post("B", 1, Priority::demand, 20, 1);
  };
  world.run();
  EXPECT_EQ(world.log.lines, (Lines{"a@0-50", "A@50-70", "m@50-80", "D@50-90", "n@80-110", "b@110-120",
                                    "B@120-140", "o@120-150"}));
}

// A request takes effect when its time is over. A cancelled request has no effect.
TEST(ModelledAgents, TheAgentCarriesOutWhatIsOver) {
  class Remembers final : public Agent {
   public:
    std::string_view name() const override { return "remembers"; }
    uint32_t credits() const override { return 4; }
    Submit submit(const Message& message, const Payload& payload) override {
      carried_out.push_back(message.site);
      EXPECT_EQ(payload.units.size(), 1u);
      done_ = {.id = message.id, .status = DoneStatus::io_error, .n_done = 7};
      return Submit::ok;
    }
    Drive drive() override { return Drive::idle; }
    size_t poll(std::span<Done> done) override { return done[0] = done_, 1; }
    std::vector<uint32_t> carried_out;

   private:
    Done done_;
  };
  const ToldLength length;
  VirtualClock clock;
  Remembers agent;
  ModelledAgent modelled(agent, length, clock);
  const Unit unit{1, 2};
  const auto submit = [&](uint32_t slot, uint32_t ns, Op op = Op::read) {
    Message message;
    message.id = {slot, 1};
    message.op = op;
    message.about = {2, 1};
    message.site = ns;
    return modelled.submit(message, {.units = {&unit, 1}});
  };
  Waiter waiter;
  EXPECT_FALSE(clock.wait(waiter)) << "nothing will happen";
  EXPECT_EQ(submit(1, 100), Submit::ok);
  EXPECT_EQ(submit(2, 50), Submit::ok);
  EXPECT_EQ(submit(3, 20), Submit::ok);
  EXPECT_EQ(modelled.drive(), Drive::idle) << "no lane has chosen";
  EXPECT_TRUE(clock.wait(waiter));
  EXPECT_EQ(clock.now_ns(), 100u);
  EXPECT_TRUE(agent.carried_out.empty());
  EXPECT_EQ(modelled.drive(), Drive::busy);
  EXPECT_EQ(agent.carried_out, std::vector<uint32_t>{100});
  EXPECT_EQ(submit(4, 0, Op::cancel), Submit::ok);
  EXPECT_EQ(submit(5, 1), Submit::busy) << "each has its credit until it is polled";
  Done done[8];
  ASSERT_EQ(modelled.poll(done), 3u);
  EXPECT_EQ(done[0].status, DoneStatus::io_error);
  EXPECT_EQ(done[0].n_done, 7u);
  EXPECT_EQ(done[0].done_ns, 100u);
  EXPECT_EQ(done[1].id.slot, 2u);
  EXPECT_EQ(done[1].status, DoneStatus::cancelled);
  EXPECT_EQ(done[2].id.slot, 4u);
  EXPECT_TRUE(clock.wait(waiter));
  EXPECT_EQ(clock.now_ns(), 120u);
  EXPECT_EQ(modelled.drive(), Drive::busy);
  EXPECT_EQ(agent.carried_out, (std::vector<uint32_t>{100, 20}));
}

}  // namespace
}  // namespace tierd
