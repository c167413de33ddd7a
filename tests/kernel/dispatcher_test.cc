#include "core/kernel/dispatcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tiers/null/null_agent.h"

namespace tierd {
namespace {

// Remembers what it hears, and may react.
class Log final : public CompletionSink {
 public:
  void on_done(const Message& message, const Done& done) override {
    EXPECT_EQ(message.id, done.id);
    std::string line = names[key(message.id)];
    line += done.status == DoneStatus::cancelled ? "x" : "@" + std::to_string(done.start_ns) + "-";
    lines.push_back(line + std::to_string(done.done_ns));
    ++count[names[key(message.id)]];
    if (react) react(names[key(message.id)]);
  }
  static uint64_t key(MessageId id) { return uint64_t{id.slot} << 32 | id.generation; }

  std::map<uint64_t, std::string> names;
  std::map<std::string, int> count;
  std::vector<std::string> lines;
  std::function<void(const std::string&)> react;
};

Dispatcher::Options modelled(uint32_t messages = 64) {
  Dispatcher::Options options;
  options.max_messages = messages;
  options.max_units = 8;
  options.model_clock = true;
  return options;
}

// The length of a message stands in its `site`.
uint64_t told_length(const Message& message) {
  return message.site;
}

class ModelledWorld {
 public:
  explicit ModelledWorld(uint32_t credits = 16)
      : disk_(credits, told_length), cpu_(credits, told_length), dispatcher_(pools_, modelled()) {
    EXPECT_EQ(dispatcher_.add_agent(disk_), 1);
    EXPECT_EQ(dispatcher_.add_agent(cpu_), 2);
  }
  MessageId post(const std::string& name, uint16_t agent, Priority priority, uint32_t length,
                 uint8_t lane = 0) {
    Message message;
    message.agent = agent;
    message.lane = lane;
    message.priority = priority;
    message.site = length;
    const MessageId id = dispatcher_.post(message, {}, log);
    log.names[Log::key(id)] = name;
    return id;
  }
  void run() {
    while (dispatcher_.turn()) {
    }
    EXPECT_EQ(dispatcher_.in_flight(), 0u);
  }
  Dispatcher& dispatcher() { return dispatcher_; }
  Log log;

 private:
  NullAgent disk_;
  NullAgent cpu_;
  PoolTable pools_;
  Dispatcher dispatcher_;
};

using Lines = std::vector<std::string>;

// Two layers on a modelled machine. Disk: a read takes 100. CPU: compute of a layer takes 60.
//   0      demand a (100) and prefetches b, c, d (100 each) are posted
//   100    a ends: compute A 100-160; b has begun, 100-200
//   160    A ends: layer 2 wants e, which nobody read ahead (demand, 100), and no longer c
//          b runs on until 200, c is cancelled at 160, e overtakes d: 200-300, d 300-400
//   300    e ends: compute E 300-360
// Makespan 400.
TEST(ModelledDispatcher, MakespanWithPrefetchesAnOvertakingDemandAndACancellation) {
  // Prefetches are equal, so that their order among each other changes nothing but names: try them all.
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

// At 50 (end of A on the CPU) a started prefetch and a waiting one are cancelled: the started one runs on.
TEST(ModelledDispatcher, CancelOfAStartedRequestIsOnlyAdvice) {
  ModelledWorld world;
  const MessageId started = world.post("p", 1, Priority::prefetch, 100);
  const MessageId waiting = world.post("q", 1, Priority::prefetch, 100);
  world.post("A", 2, Priority::demand, 50, 1);
  world.log.react = [&](const std::string& name) {
    if (name != "A") return;
    world.dispatcher().cancel(started);
    world.dispatcher().cancel(waiting);
    world.dispatcher().cancel(waiting);  // twice is once
    world.dispatcher().cancel({1234, 5});
    world.dispatcher().raise(waiting, Priority::demand);
  };
  world.run();
  EXPECT_EQ(world.log.lines, (Lines{"A@0-50", "qx50", "p@0-100"}));
}

// With one credit the requests wait in the kernel; the order is the same, and so is the makespan.
TEST(ModelledDispatcher, CreditsDoNotChangeWhoGoesFirst) {
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
    // With a credit for each, r has arrived at the disk before d; in the kernel's list d stands before the
    // raised r or behind it: both are demands at 50.
    ASSERT_EQ(world.log.lines.size(), 5u) << credits;
    EXPECT_EQ(world.log.lines[0], "A@0-50") << credits;
    EXPECT_EQ(world.log.lines[1], "qx50") << credits;
    EXPECT_EQ(world.log.lines[2], "p@0-100") << credits;
    EXPECT_EQ(world.dispatcher().now_ns(), 210u) << credits;
  }
}

// A seeded crowd on two agents and both lanes. Each lane is never idle (everything is there from the
// start), so each ends after the sum of its lengths, whatever the order of the posts.
TEST(ModelledDispatcher, AnyOrderOfPostsGivesTheSameMakespan) {
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

// ---- wall clock

// Accepts as scripted, completes what the test names, remembers what it was given.
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
  uint64_t service_ns(const Message&, const Payload&) const override { return 0; }

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
  std::vector<Payload> payloads;  // theirs
  std::vector<std::pair<Op, MessageId>> controls;
  std::vector<Message> open;
  std::deque<Done> ready;

 private:
  uint32_t credits_;
};

class WallWorld {
 public:
  explicit WallWorld(uint32_t credits, uint32_t messages = 64, std::optional<uint64_t> seed = {})
      : agent(credits), dispatcher(pools_, options(messages, seed)) {
    dispatcher.add_agent(agent);
  }
  MessageId post(const std::string& name, Priority priority, std::span<const Unit> units = {}) {
    Message message;
    message.agent = 1;
    message.priority = priority;
    const MessageId id = dispatcher.post(message, {.units = units}, log);
    log.names[Log::key(id)] = name;
    return id;
  }
  std::string accepted() {
    std::string text;
    for (const Message& m : agent.accepted) text += log.names[Log::key(m.id)];
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

 public:
  Log log;
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
  const auto waits = [](Notice& n, const Log& log, std::vector<size_t>& seen) -> Task<int> {
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
  world.dispatcher.turn();  // nothing came
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
  EXPECT_EQ(world.log.lines.size(), 0u);  // completions come in a turn, never inside the call
  world.dispatcher.turn();
  EXPECT_EQ(world.log.count["c"], 1);
  world.agent.complete(world.agent.accepted[1].id);  // a credit for the advice
  world.dispatcher.turn();
  world.dispatcher.turn();
  ASSERT_EQ(world.agent.controls.size(), 1u);
  EXPECT_EQ(world.agent.controls[0], std::pair(Op::cancel, sent));
  world.agent.complete(sent, DoneStatus::cancelled);
  world.agent.complete_all();
  world.dispatcher.turn();
  EXPECT_EQ(world.dispatcher.in_flight(), 0u);
  EXPECT_EQ(world.accepted(), "ab");
  world.dispatcher.cancel(sent);  // long gone
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
  world.dispatcher.raise(sent, Priority::demand);  // told once
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

// Posts, cancels and raises at random; each request is heard of once, and every credit comes back.
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
    // All credits are back: that many go out in one turn.
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
