#include "tiers/null/null_agent.h"

#include <gtest/gtest.h>

#include "tests/tier-conform/agent_cases.h"

namespace tierd {
namespace {

INSTANTIATE_TEST_SUITE_P(Null, AgentConformance, testing::ValuesIn(rule_cases("null")), case_name);
INSTANTIATE_TEST_SUITE_P(FewCredits, AgentConformance,
                         testing::ValuesIn(rule_cases("null", {{"credits", int64_t{3}, "test"}})), case_name);

TEST(NullAgent, TakesItsServiceTimeUnderTheModelledClock) {
  NullAgent agent(4, [](const Message& message) { return message.op == Op::read ? 700u : 30u; });
  Message read;
  read.op = Op::read;
  read.queued_ns = 1000;
  EXPECT_EQ(agent.service_ns(read, {}), 700u);
  ASSERT_EQ(agent.submit(read, {}), Submit::ok);
  EXPECT_EQ(agent.drive(), Drive::busy);
  Done done;
  ASSERT_EQ(agent.poll({&done, 1}), 1u);
  EXPECT_EQ(done.start_ns, 1000u);
  EXPECT_EQ(done.done_ns, 1700u);
}

}  // namespace
}  // namespace tierd
