#include <gtest/gtest.h>

#include "core/watch/timeline/timeline.h"
#include "tests/watch/timeline/slices.h"

namespace tierd {
namespace {

TEST(TimelineRing, KeepsTheLatestAndCountsTheOthers) {
  Timeline timeline(3);
  for (uint64_t i = 0; i < 8; ++i) timeline.add(compute_slice(10 * i, 10 * i + 5));
  EXPECT_EQ(timeline.size(), 3u);
  EXPECT_EQ(timeline.dropped(), 5u);
  EXPECT_EQ(timeline.whole_from_ns(), 45u);
  const auto slices = timeline.sorted();
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices.front()->begin_ns, 50u);
  EXPECT_EQ(slices.back()->begin_ns, 70u);
}

// A viewer nests a slice into the one before it that encloses it.
TEST(TimelineRing, WhatHoldsOthersComesFirst) {
  Timeline timeline;
  timeline.add(compute_slice(10, 20));
  timeline.add(compute_slice(5, 6));
  timeline.add(step_slice(1, 10, 50));
  timeline.add(compute_slice(10, 10));
  const auto slices = timeline.sorted();
  ASSERT_EQ(slices.size(), 4u);
  EXPECT_EQ(slices[0]->begin_ns, 5u);
  EXPECT_EQ(slices[1]->end_ns, 50u);
  EXPECT_EQ(slices[2]->end_ns, 20u);
  EXPECT_EQ(slices[3]->end_ns, 10u);
}

TEST(TimelineRing, PassesFollowEachOtherInsideTheirStep) {
  Timeline timeline;
  timeline.step_ends(1);  // an empty step
  timeline.pass_begins(0, 7, 2, true, 10);
  timeline.pass_begins(1, 7, 2, true, 20);
  timeline.waited(true, 22, 23);
  timeline.passes_end(30);
  timeline.predictor_asked(1, "observe", 31, 32);
  timeline.step_ends(40);
  timeline.pass_begins(0, 8, 1, false, 50);
  timeline.step_ends(60);
  timeline.waited(false, 61, 62);
  const auto slices = timeline.sorted();
  ASSERT_EQ(slices.size(), 8u);
  const Slice& step = *slices[0];
  EXPECT_EQ(step.kind, Slice::Kind::step);
  EXPECT_TRUE(step.prefill);
  EXPECT_EQ(step.end_ns, 40u);
  EXPECT_EQ(slices[1]->kind, Slice::Kind::pass);
  EXPECT_EQ(slices[1]->end_ns, 20u);
  EXPECT_EQ(slices[2]->site, 1u);
  EXPECT_EQ(slices[2]->end_ns, 30u);
  EXPECT_EQ(slices[3]->kind, Slice::Kind::wait);
  EXPECT_EQ(slices[3]->site, 1u);
  EXPECT_EQ(slices[4]->step, 7u);
  EXPECT_FALSE(slices[5]->prefill);
  EXPECT_EQ(slices[6]->end_ns, 60u);
  EXPECT_EQ(slices[7]->site, kNoSiteId);
}

}  // namespace
}  // namespace tierd
