#include "core/watch/timeline/pipeline.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "tests/watch/timeline/slices.h"

namespace tierd {
namespace {

constexpr Priority kDemand = Priority::demand, kPreload = Priority::prefetch;

PipelineTimes times_of(std::initializer_list<Slice> slices) {
  Timeline timeline;
  for (const Slice& slice : slices) timeline.add(slice);
  return pipeline_times(timeline);
}

TEST(Pipeline, OfNothingIsNothing) {
  const PipelineTimes times = times_of({});
  EXPECT_EQ(times.steps, 0u);
  EXPECT_EQ(times.wall_ns, 0u);
  EXPECT_EQ(times.hidden_share(), 0);
  EXPECT_EQ(times.hidden_of_hideable(), 0);
}

TEST(Pipeline, OfOneSlice) {
  EXPECT_EQ(times_of({compute_slice(10, 20)}).compute_ns, 0u);  // in no step
  const PipelineTimes step = times_of({step_slice(1, 10, 30)});
  EXPECT_EQ(step.steps, 1u);
  EXPECT_EQ(step.wall_ns, 20u);
  EXPECT_EQ(step.busy_ns + step.flash_ns + step.waited_ns, 0u);
}

// The step takes 100 ns: it computes in 0-40, preloads in 10-60, and has a demand in 70-90 for which the
// kernel waits.
TEST(Pipeline, TellsWhatIsHidden) {
  const PipelineTimes times =
      times_of({step_slice(1, 0, 100), compute_slice(0, 40), read_slice(kPreload, 10, 60, 1000),
                read_slice(kDemand, 70, 90, 50), wait_slice(false, 40, 50), wait_slice(true, 70, 90)});
  EXPECT_EQ(times.wall_ns, 100u);
  EXPECT_EQ(times.compute_ns, 40u);
  EXPECT_EQ(times.busy_ns, 40u);
  EXPECT_EQ(times.flash_ns, 70u);
  EXPECT_EQ(times.preload_ns, 50u);
  EXPECT_EQ(times.demand_ns, 20u);
  EXPECT_EQ(times.overlap_ns, 30u);
  EXPECT_EQ(times.hidden_ns, 30u);
  EXPECT_EQ(times.hideable_ns, 40u);
  EXPECT_EQ(times.waited_ns, 30u);
  EXPECT_EQ(times.waited_on_demand_ns, 20u);
  EXPECT_EQ(times.demand_bytes, 50u);
  EXPECT_EQ(times.preload_bytes, 1000u);
  EXPECT_EQ(times.preload_reads, 2u);
  EXPECT_DOUBLE_EQ(times.hidden_share(), 0.6);
  EXPECT_DOUBLE_EQ(times.hidden_of_hideable(), 0.75);
}

// Overlapping, nested or equal slices: each moment counts once.
TEST(Pipeline, WhatOverlapsCountsOnce) {
  const PipelineTimes times =
      times_of({step_slice(1, 0, 100), read_slice(kPreload, 10, 50), read_slice(kPreload, 20, 30),
                read_slice(kPreload, 20, 30), read_slice(kPreload, 40, 60), read_slice(kDemand, 55, 70),
                read_slice(Priority::migration, 65, 80), compute_slice(0, 30), compute_slice(5, 30, Op::run),
                compute_slice(25, 45), predictor_slice(44, 48), predictor_slice(90, 91)});
  EXPECT_EQ(times.preload_ns, 50u);
  EXPECT_EQ(times.demand_ns, 15u);
  EXPECT_EQ(times.flash_ns, 70u);
  EXPECT_EQ(times.compute_ns, 45u);
  EXPECT_EQ(times.predictor_ns, 5u);
  EXPECT_EQ(times.busy_ns, 49u);
  EXPECT_EQ(times.hidden_ns, 38u);
  EXPECT_EQ(times.overlap_ns, 38u);
}

// A GPU's copies over its link, during its computing and during reads.
TEST(Pipeline, TellsWhichCopiesAreBesideComputing) {
  const PipelineTimes times =
      times_of({step_slice(1, 0, 100), compute_slice(0, 40), copy_slice(30, 60, 700), copy_slice(50, 70, 300),
                read_slice(kPreload, 55, 90), predictor_slice(65, 68), copy_slice(98, 120, 9)});
  EXPECT_EQ(times.copied_ns, 42u);
  EXPECT_EQ(times.copied_beside_ns, 13u);
  EXPECT_EQ(times.copied_bytes, 1000u) << "the last one ended after the step";
  EXPECT_EQ(times.flash_ns, 35u);
  EXPECT_EQ(times.overlap_ns, 3u);
}

TEST(Pipeline, WhatTakesNoTimeChangesNothing) {
  const PipelineTimes times =
      times_of({step_slice(1, 0, 10), step_slice(2, 10, 10), step_slice(3, 10, 20), compute_slice(5, 5),
                read_slice(kPreload, 7, 7, 9), read_slice(kDemand, 10, 10, 4), wait_slice(true, 3, 3)});
  EXPECT_EQ(times.steps, 3u);
  EXPECT_EQ(times.wall_ns, 20u);
  EXPECT_EQ(times.busy_ns + times.flash_ns + times.waited_ns, 0u);
  EXPECT_EQ(times.preload_bytes, 9u);
  EXPECT_EQ(times.demand_bytes, 4u);
}

// A read that continues from one step into the next, over the gap between them, counts its part in each.
TEST(Pipeline, OnlyStepsOfDecodeCount) {
  const PipelineTimes times =
      times_of({step_slice(0, 0, 100, true), compute_slice(0, 100), read_slice(kPreload, 50, 130, 7),
                step_slice(1, 110, 150), compute_slice(120, 150), read_slice(kPreload, 140, 230, 5),
                compute_slice(150, 200), step_slice(2, 200, 240), read_slice(kDemand, 239, 250, 3)});
  EXPECT_EQ(times.steps, 2u);
  EXPECT_EQ(times.wall_ns, 80u);
  EXPECT_EQ(times.compute_ns, 30u);
  EXPECT_EQ(times.preload_ns, 20u + 10 + 30);
  EXPECT_EQ(times.hidden_ns, 20u);
  EXPECT_EQ(times.hideable_ns, 30u);  // the second step has no reads to hide
  EXPECT_EQ(times.demand_ns, 1u);
  EXPECT_EQ(times.preload_bytes, 12u);
  EXPECT_EQ(times.demand_bytes, 0u);  // ended after the last step
}

// A step whose beginning was dropped is not counted.
TEST(Pipeline, AStepThatIsNotWholeDoesNotCount) {
  Timeline timeline(4);
  timeline.add(compute_slice(0, 10));
  timeline.add(compute_slice(10, 20));
  timeline.add(step_slice(1, 0, 30));
  timeline.add(compute_slice(30, 35));
  timeline.add(step_slice(2, 30, 40));
  EXPECT_EQ(timeline.dropped(), 1u);
  const PipelineTimes times = pipeline_times(timeline);
  EXPECT_EQ(times.steps, 1u);
  EXPECT_EQ(times.wall_ns, 10u);
  EXPECT_EQ(times.compute_ns, 5u);
}

}  // namespace
}  // namespace tierd
