// Copies of closest friends: neuron i is extent 2 i, behind it lies a copy of its friend. Who is wanted comes
// from behind another that is; who is not comes along where the cache has room for it.
#include "core/kernel/friends.h"

#include <gtest/gtest.h>

#include "core/base/random.h"
#include "tests/kernel/scripted_world.h"
#include "tests/store/draw_friends.h"

namespace tierd {
namespace {

int answer(const Neurons& neurons, tierd_set_out* out) {
  out->n = static_cast<uint32_t>(neurons.size());
  std::copy(neurons.begin(), neurons.end(), out->idx);
  return 0;
}

// One network of six neurons.
WorldOptions six(const Neurons& friends, uint32_t slots) {
  WorldOptions options;
  options.neurons = {6};
  options.slots = {slots};
  options.neurons_per_block = 6;
  options.bundles = true;
  options.friends = {friends};
  return options;
}

class FriendWorld : public ScriptedWorld {
 public:
  explicit FriendWorld(const WorldOptions& options) : ScriptedWorld(options) {
    script.admit = keep_what_fits();
    script.predict = [this](SiteId, tierd_set_out* out) { return answer(active, out); };
  }
  Status use(const Neurons& neurons) {
    active = neurons;
    Status status = pass(0, step);
    if (status.ok()) expect_whole(0, step, neurons);
    EXPECT_TRUE(end_step(step++).ok());
    return status;
  }
  const SchedulerCounters& counters() const { return scheduler->counters(); }

  Neurons active;
  uint32_t step = 0;
};

TEST(Friends, ComeFromBehindOneAnother) {
  FriendWorld world(six({1, 0, 3, 2, 5, 4}, 6));
  ASSERT_TRUE(world.use({0, 1, 4}).ok());
  // 1 from behind 0; 5 is the friend of 4.
  EXPECT_EQ(world.reads(), "[0,1,8,9]");
  EXPECT_EQ(world.counters().friends_together, 1u);
  EXPECT_EQ(world.counters().friends_read, 1u);
  EXPECT_EQ(world.counters().friends_bytes, kSlot);
  EXPECT_EQ(world.counters().misses, 3u);
  EXPECT_EQ(world.counters().friends_used, 0u);
  ASSERT_TRUE(world.use({5}).ok());
  ASSERT_TRUE(world.use({5}).ok());
  EXPECT_EQ(world.flash.started.size(), 1u);
  EXPECT_EQ(world.counters().hits, 2u);
  EXPECT_EQ(world.counters().friends_used, 1u) << "once, however often";
  world.expect_nothing_lost();
}

// The same neuron is everybody's friend: it comes once, and is here from then on.
TEST(Friends, ThatAreHereDoNotComeAgain) {
  FriendWorld world(six({5, 5, 5, 5, 5, 0}, 6));
  ASSERT_TRUE(world.use({0, 1}).ok());
  EXPECT_EQ(world.reads(), "[0,2,1]");
  ASSERT_TRUE(world.use({2, 3}).ok());
  EXPECT_EQ(world.reads(), "[0,2,1][4,6]");
  EXPECT_EQ(world.counters().friends_read, 1u);
  EXPECT_EQ(world.counters().friends_here, 2u);
  world.expect_nothing_lost();
}

TEST(Friends, StayAwayWhereThereIsNoRoom) {
  FriendWorld world(six({3, 4, 5, 0, 1, 2}, 2));
  ASSERT_TRUE(world.use({0, 1}).ok());
  EXPECT_EQ(world.reads(), "[0,2]");
  EXPECT_EQ(world.counters().friends_read, 0u);
  // What streams by brings nobody.
  ASSERT_TRUE(world.use({2}).ok());
  EXPECT_EQ(world.reads(), "[0,2][4]");
  // But comes from behind another.
  ASSERT_TRUE(world.use({2, 5}).ok());
  EXPECT_EQ(world.reads(), "[0,2][4][4,5]");
  world.expect_nothing_lost();
}

TEST(Friends, ThatLeaveUnusedWereInVain) {
  FriendWorld world(six({3, 4, 5, 0, 1, 2}, 6));
  world.script.expire = [&](SiteId site, tierd_victims_out* out) {
    for (uint32_t i = 0; i < 6; ++i) {
      if (world.residency.evictable(site, i)) out->item[out->n++] = {site, i};
    }
  };
  ASSERT_TRUE(world.use({0}).ok());
  ASSERT_TRUE(world.use({3}).ok());
  EXPECT_EQ(world.reads(), "[0,1][6,7]");
  EXPECT_EQ(world.counters().friends_read, 2u);
  EXPECT_EQ(world.counters().friends_used, 0u);
  world.expect_nothing_lost();
}

// A damaged copy fails nothing, even where a read is tried but once.
TEST(Friends, ThatCannotBeReadHarmNobody) {
  WorldOptions options = six({1, 0, 3, 2, 5, 4}, 6);
  options.attempts = 1;
  FriendWorld world(options);
  uint32_t failures = 1;
  world.idle = [&] {
    if (world.flash.open.empty()) return;
    const bool fails = failures != 0;
    failures -= fails ? 1 : 0;
    world.flash.finish(0, fails ? DoneStatus::corrupt : DoneStatus::ok, 1);
  };
  ASSERT_TRUE(world.use({0, 1, 4}).ok());
  EXPECT_EQ(world.reads(), "[0,1,8,9][0,2,8]");
  EXPECT_FALSE(world.residency.valid(0, 5));
  EXPECT_NE(std::find(world.script.calls.begin(), world.script.calls.end(), "failed 0:5"),
            world.script.calls.end());
  // By themselves they are tried as often as anything.
  failures = 1;
  const Status failed = world.use({2});
  ASSERT_TRUE(failed.ok()) << "the friend of 2 came along";
  failures = 2;
  EXPECT_FALSE(world.use({5}).ok());
  world.expect_nothing_lost();
}

TEST(Friends, ThatAreOnTheirWayAreWaitedFor) {
  WorldOptions options = six({3, 4, 5, 0, 1, 2}, 6);
  options.neurons = {6, 6};
  options.slots = {6, 6};
  FriendWorld world(options);
  world.script.look_ahead = [](SiteId site) {
    return site == 1 ? std::vector<Ahead>{{0, 1, Neurons{0}}} : std::vector<Ahead>{};
  };
  // The read for step 1 of site 0 is under way, and with it neuron 3.
  world.active = {0, 1, 2, 3, 4, 5};
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.settle();
  ASSERT_EQ(world.flash.open.size(), 1u);
  EXPECT_EQ(world.flash.open[0].extents, (Neurons{0, 1}));
  world.active = {3};
  ASSERT_TRUE(world.pass(0, 1).ok());
  world.expect_whole(0, 1, {3});
  EXPECT_EQ(world.counters().staged, 1u);
  EXPECT_EQ(world.counters().friends_used, 1u);
  world.expect_nothing_lost();
}

// Not even then does a damaged copy harm: who is waited for comes from its own place.
TEST(Friends, ThatAreWaitedForAreReadAgain) {
  WorldOptions options = six({3, 4, 5, 0, 1, 2}, 6);
  options.neurons = {6, 6};
  options.slots = {6, 6};
  options.attempts = 1;
  FriendWorld world(options);
  world.script.look_ahead = [](SiteId site) {
    return site == 1 ? std::vector<Ahead>{{0, 1, Neurons{0, 1}}} : std::vector<Ahead>{};
  };
  world.active = {0};
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.settle();
  ASSERT_EQ(world.flash.open.size(), 1u);
  EXPECT_EQ(world.flash.open[0].extents, (Neurons{0, 2, 1, 3}));
  bool failed = false;
  world.idle = [&] {
    if (world.flash.open.empty()) return;
    world.flash.finish(0, std::exchange(failed, true) ? DoneStatus::ok : DoneStatus::corrupt, 3);
  };
  world.active = {1, 4};
  ASSERT_TRUE(world.pass(0, 1).ok());
  world.expect_whole(0, 1, {1, 4});
  EXPECT_EQ(world.flash.started.back().extents, (Neurons{0, 2, 8}));
  EXPECT_FALSE(world.residency.valid(0, 3));
  world.expect_nothing_lost();
}

// Everyone wanted comes once, from its own place or from behind one that does.
TEST(Friends, PairsAreDisjoint) {
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<Site> sites(1);
    sites[0].n = 2 + random.below(60);
    sites[0].friends = draw_friends(random, sites[0].n);
    SchedulerCounters counters;
    Friends friends(sites, counters);
    Neurons wanted;
    for (uint32_t i = 0; i < sites[0].n; ++i) {
      if (random.below(2) == 0) wanted.push_back(i);
    }
    std::vector<uint32_t> behind;
    friends.pair(0, wanted, behind);
    ASSERT_EQ(behind.size(), wanted.size());
    std::set<uint32_t> bearers;
    uint64_t together = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (behind[i] == kBehindNone) continue;
      ++together;
      EXPECT_EQ(sites[0].friends[behind[i]], wanted[i]);
      EXPECT_TRUE(bearers.insert(behind[i]).second);
      const auto bearer = std::find(wanted.begin(), wanted.end(), behind[i]);
      ASSERT_NE(bearer, wanted.end());
      EXPECT_EQ(behind[static_cast<size_t>(bearer - wanted.begin())], kBehindNone);
    }
    EXPECT_EQ(counters.friends_together, together);
    const auto absent = [](uint32_t) { return true; };
    uint32_t last = kBehindNone;
    for (const Friends::Guest& guest : friends.guests(0, wanted, behind, absent)) {
      EXPECT_EQ(sites[0].friends[guest.behind], guest.neuron);
      EXPECT_TRUE(last == kBehindNone || guest.neuron > last);
      last = guest.neuron;
    }
  }
}

}  // namespace
}  // namespace tierd
