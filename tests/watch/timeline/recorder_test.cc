#include "core/watch/timeline/recorder.h"

#include <gtest/gtest.h>

namespace tierd {
namespace {

Message message(uint32_t slot, Op op, Priority priority = Priority::demand) {
  Message message;
  message.id = {slot, 1};
  message.op = op;
  message.priority = priority;
  message.agent = op == Op::read ? 2 : 1;
  message.step = 4;
  if (priority == Priority::prefetch) message.expires_step = 5;
  message.queued_ns = 3;
  return message;
}
Done done(const Message& message, uint64_t start_ns, uint64_t done_ns) {
  Done done;
  done.id = message.id;
  done.n_done = 6;
  done.reads = 2;
  done.bytes = 4096;
  done.start_ns = start_ns;
  done.done_ns = done_ns;
  return done;
}

class TimelineRecords : public testing::Test {
 protected:
  void post(const Message& message) { recorder_.posted(message, {}); }
  std::vector<const Slice*> slices() const { return timeline_.sorted(); }

  Timeline timeline_;
  WallClock clock_;
  TimelineRecorder recorder_{timeline_, clock_};
};

TEST_F(TimelineRecords, AMessageThatWasServed) {
  const Message read = message(1, Op::read);
  post(read);
  recorder_.delivered(read, done(read, 10, 30), false);
  ASSERT_EQ(slices().size(), 1u);
  const Slice& slice = *slices().front();
  EXPECT_EQ(slice.begin_ns, 10u);
  EXPECT_EQ(slice.end_ns, 30u);
  EXPECT_EQ(slice.queued_ns, 3u);
  EXPECT_EQ(slice.priority, Priority::demand);
  EXPECT_EQ(slice.units, 6u);
  EXPECT_EQ(slice.reads, 2u);
  EXPECT_EQ(slice.bytes, 4096u);
  EXPECT_FALSE(slice.raised);
}

// A prefetch that becomes a demand keeps its first kind.
TEST_F(TimelineRecords, APreloadThatSomebodyWaitsFor) {
  Message ahead = message(1, Op::read, Priority::prefetch);
  post(ahead);
  recorder_.waited(1, 2);
  ahead.priority = Priority::demand;
  recorder_.raised(ahead);
  recorder_.waited(3, 4);
  recorder_.delivered(ahead, done(ahead, 5, 6), false);
  recorder_.waited(7, 8);
  ASSERT_EQ(slices().size(), 4u);
  EXPECT_FALSE(slices()[0]->on_demand);
  EXPECT_TRUE(slices()[1]->on_demand);
  EXPECT_EQ(slices()[2]->priority, Priority::prefetch);
  EXPECT_TRUE(slices()[2]->raised);
  EXPECT_FALSE(slices()[3]->on_demand);
}

// While an agent on another thread computes, the kernel's wait is not on demand.
TEST_F(TimelineRecords, WaitingBesideComputingIsNotOnDemand) {
  const Message read = message(1, Op::read), compute = message(2, Op::run);
  post(read);
  post(compute);
  recorder_.waited(1, 2);
  recorder_.delivered(compute, done(compute, 1, 3), false);
  recorder_.waited(3, 4);
  EXPECT_FALSE(slices()[1]->on_demand);
  EXPECT_TRUE(slices()[2]->on_demand);
}

TEST_F(TimelineRecords, AdviceAndWhatNoAgentSawAreLeftOut) {
  const Message withdrawn = message(1, Op::read);
  post(withdrawn);
  recorder_.delivered(withdrawn, done(withdrawn, 1, 1), true);
  uint32_t slot = 2;
  for (const Op op : {Op::cancel, Op::raise}) {
    const Message advice = message(slot++, op);
    post(advice);
    recorder_.delivered(advice, done(advice, 1, 2), false);
  }
  EXPECT_TRUE(slices().empty());
  recorder_.waited(1, 2);
  EXPECT_FALSE(slices().front()->on_demand);
}

}  // namespace
}  // namespace tierd
