// Times are worked out by hand: each test has its timeline in a comment.
#include "core/kernel/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/random.h"

namespace tierd {
namespace {

struct Post {
  uint32_t id;
  Priority priority;
  uint64_t service_ns;
  uint16_t agent = 1;
  uint8_t lane = 0;
};

Message message_of(const Post& post) {
  Message message;
  message.id = {post.id, 1};
  message.priority = post.priority;
  message.agent = post.agent;
  message.lane = post.lane;
  return message;
}

void submit(EventQueue& queue, const Post& post) {
  queue.submit(message_of(post), post.service_ns);
}

// "3@10-30": request 3 from 10 to 30; a cancelled one as "3x20".
std::string text(const EventQueue::Completion& c) {
  const std::string id = std::to_string(c.message.id.slot);
  if (c.cancelled) return id + "x" + std::to_string(c.done_ns);
  return id + "@" + std::to_string(c.start_ns) + "-" + std::to_string(c.done_ns);
}

std::vector<std::string> run(EventQueue& queue) {
  std::vector<std::string> all;
  while (const auto completion = queue.next()) all.push_back(text(*completion));
  EXPECT_TRUE(queue.empty());
  return all;
}

using Lines = std::vector<std::string>;

TEST(EventQueue, OneLaneServesOneAfterTheOther) {
  EventQueue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.next().has_value());
  submit(queue, {1, Priority::prefetch, 10});
  submit(queue, {2, Priority::prefetch, 20});
  submit(queue, {3, Priority::prefetch, 5});
  EXPECT_EQ(run(queue), (Lines{"1@0-10", "2@10-30", "3@30-35"}));
  EXPECT_EQ(queue.now_ns(), 35u);
}

TEST(EventQueue, LanesAndAgentsWorkSideBySide) {
  // lane 0 of agent 1: 1 then 4; its lane 2: 2; lane 0 of agent 2: 3
  EventQueue queue;
  submit(queue, {1, Priority::demand, 30});
  submit(queue, {2, Priority::demand, 10, 1, 2});
  submit(queue, {3, Priority::demand, 20, 2});
  submit(queue, {4, Priority::demand, 5});
  EXPECT_EQ(run(queue), (Lines{"2@0-10", "3@0-20", "1@0-30", "4@30-35"}));
}

TEST(EventQueue, DemandOvertakesWhatWaitsNotWhatHasStarted) {
  // 0-100 prefetch 1; at 40 (end of 9 on another lane) demand 5 comes: 100-110; then the prefetches 2, 3
  EventQueue queue;
  submit(queue, {1, Priority::prefetch, 100});
  submit(queue, {2, Priority::prefetch, 100});
  submit(queue, {3, Priority::prefetch, 100});
  submit(queue, {9, Priority::demand, 40, 2});
  EXPECT_EQ(text(*queue.next()), "9@0-40");
  submit(queue, {5, Priority::demand, 10});
  EXPECT_EQ(run(queue), (Lines{"1@0-100", "5@100-110", "2@110-210", "3@210-310"}));
}

TEST(EventQueue, AnEngineChoosesOnlyWhenAllThatEndsThenHasBeenTold) {
  // 1 (agent 1) and 2 (agent 2) both end at 10. Told of the second, the kernel posts a demand for agent 1: it
  // still goes before the prefetch that has waited there.
  EventQueue queue;
  submit(queue, {1, Priority::demand, 10, 1});
  submit(queue, {2, Priority::demand, 10, 2});
  submit(queue, {3, Priority::prefetch, 50, 1});
  EXPECT_EQ(text(*queue.next()), "1@0-10");
  EXPECT_EQ(text(*queue.next()), "2@0-10");
  submit(queue, {4, Priority::demand, 5, 1});
  EXPECT_EQ(run(queue), (Lines{"4@10-15", "3@15-65"}));
}

TEST(EventQueue, CancelTakesOutWhatWaitsAtTheSameMomentToo) {
  // At 10 the lane is free again, prefetch 2 is next; told of the end of 1 the kernel cancels 3 and then
  // posts demand 4. Cancelling must not let the lane choose 2 before 4 is there.
  EventQueue queue;
  submit(queue, {1, Priority::demand, 10});
  submit(queue, {2, Priority::prefetch, 100});
  submit(queue, {3, Priority::prefetch, 100});
  EXPECT_EQ(text(*queue.next()), "1@0-10");
  EXPECT_TRUE(queue.cancel({3, 1}));
  submit(queue, {4, Priority::demand, 5});
  EXPECT_EQ(run(queue), (Lines{"3x10", "4@10-15", "2@15-115"}));
}

TEST(EventQueue, WhatHasStartedRunsOn) {
  // 1 runs 0-100; at 40 it can be neither cancelled nor raised; 2 waits and can
  EventQueue queue;
  submit(queue, {1, Priority::prefetch, 100});
  submit(queue, {2, Priority::prefetch, 100});
  submit(queue, {9, Priority::demand, 40, 2});
  EXPECT_EQ(text(*queue.next()), "9@0-40");
  EXPECT_FALSE(queue.cancel({1, 1}));
  EXPECT_FALSE(queue.raise({1, 1}, Priority::demand));
  EXPECT_FALSE(queue.cancel({77, 1}));  // unknown
  EXPECT_FALSE(queue.cancel({2, 9}));   // stale generation
  EXPECT_TRUE(queue.cancel({2, 1}));
  EXPECT_FALSE(queue.cancel({2, 1}));  // only once
  EXPECT_EQ(run(queue), (Lines{"2x40", "1@0-100"}));
}

TEST(EventQueue, RaisedGoesFirst) {
  // 0-10: 1; then 3 (raised) 10-20, then 2 20-30
  EventQueue queue;
  submit(queue, {1, Priority::demand, 10});
  submit(queue, {2, Priority::prefetch, 10});
  submit(queue, {3, Priority::migration, 10});
  EXPECT_TRUE(queue.raise({3, 1}, Priority::demand));
  EXPECT_TRUE(queue.raise({2, 1}, Priority::migration));  // never lowers
  EXPECT_EQ(run(queue), (Lines{"1@0-10", "3@10-20", "2@20-30"}));
}

TEST(EventQueue, EqualTimesComeByPriorityThenId) {
  EventQueue queue;
  submit(queue, {7, Priority::prefetch, 10, 1});
  submit(queue, {6, Priority::demand, 10, 2});
  submit(queue, {5, Priority::migration, 10, 3});
  submit(queue, {4, Priority::demand, 10, 4});
  submit(queue, {3, Priority::prefetch, 10, 5});
  EXPECT_EQ(run(queue), (Lines{"4@0-10", "6@0-10", "3@0-10", "7@0-10", "5@0-10"}));
}

TEST(EventQueue, WhatIsCancelledKeepsItsRankAmongWhatEndsThen) {
  // at 10: 1 (demand) told first; then 8 (prefetch, waiting) is cancelled; 2 (demand, agent 2) ends at 10,
  // too
  EventQueue queue;
  submit(queue, {1, Priority::demand, 10, 1});
  submit(queue, {2, Priority::demand, 10, 2});
  submit(queue, {8, Priority::prefetch, 10, 1});
  EXPECT_EQ(text(*queue.next()), "1@0-10");
  EXPECT_TRUE(queue.cancel({8, 1}));
  EXPECT_EQ(run(queue), (Lines{"2@0-10", "8x10"}));
}

TEST(EventQueue, WorkOfNoLengthEnds) {
  EventQueue queue;
  submit(queue, {1, Priority::demand, 0});
  submit(queue, {2, Priority::demand, 0});
  submit(queue, {3, Priority::demand, 0, 2});
  EXPECT_EQ(run(queue), (Lines{"1@0-0", "3@0-0", "2@0-0"}));
}

// Two agents, prefetches of equal length, one demand each: whatever the order of the posts, the demand goes
// first, the prefetches of an agent follow back to back.
//   agent 1 (read): demand 7 ns; prefetches 3 x 10 -> ends 7, 17, 27, 37
//   agent 2 (read): demand 4 ns; prefetches 2 x 20 -> ends 4, 24, 44
//   agent 2 (compute): 30 -> 30
TEST(EventQueue, AnyOrderOfPostsGivesTheSameTimes) {
  std::vector<Post> posts = {{10, Priority::demand, 7},       {11, Priority::prefetch, 10},
                             {12, Priority::prefetch, 10},    {13, Priority::prefetch, 10},
                             {20, Priority::prefetch, 20, 2}, {21, Priority::prefetch, 20, 2},
                             {22, Priority::demand, 4, 2},    {30, Priority::demand, 30, 2, 2}};
  Random random(17);
  for (int round = 0; round < 200; ++round) {
    for (size_t i = posts.size(); i > 1; --i) {
      std::swap(posts[i - 1], posts[random.below(static_cast<uint32_t>(i))]);
    }
    EventQueue queue;
    for (const Post& post : posts) submit(queue, post);
    std::vector<uint64_t> ends;
    uint64_t demand_1 = 0;
    uint64_t demand_2 = 0;
    while (const auto c = queue.next()) {
      ends.push_back(c->done_ns);
      if (c->message.id.slot == 10) demand_1 = c->done_ns;
      if (c->message.id.slot == 22) demand_2 = c->done_ns;
    }
    EXPECT_EQ(ends, (std::vector<uint64_t>{4, 7, 17, 24, 27, 30, 37, 44}));
    EXPECT_EQ(demand_1, 7u);
    EXPECT_EQ(demand_2, 4u);
  }
}

}  // namespace
}  // namespace tierd
