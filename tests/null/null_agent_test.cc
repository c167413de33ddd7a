#include "tiers/null/null_agent.h"

#include <gtest/gtest.h>

#include "tests/conformance/agent_suite.h"

namespace tierd {
namespace {

class NullWorld final : public AgentWorld {
 public:
  Agent& agent() override { return agent_; }
  Message work() override { return control(Op::compute, {}); }
  Message control(Op op, const MessageId&) override {
    Message message;
    message.id = {.slot = next_++, .generation = 1};
    message.op = op;
    return message;
  }
  void completed(const Message&, const Done&) override {}

 private:
  NullAgent agent_{8};
  uint32_t next_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Null, AgentConformance,
                         testing::Values(AgentCase{"null",
                                                   [](uint64_t) { return std::make_unique<NullWorld>(); }}),
                         case_name);

TEST(NullAgent, TakesItsServiceTimeUnderTheModelledClock) {
  NullAgent agent(4, [](const Message& message) { return message.op == Op::read ? 700u : 30u; });
  Message read;
  read.op = Op::read;
  read.queued_ns = 1000;
  read.ready_ns = 1500;
  EXPECT_EQ(agent.service_ns(read), 700u);
  ASSERT_EQ(agent.submit(read), Submit::ok);
  EXPECT_EQ(agent.drive(), Drive::busy);
  Done done;
  ASSERT_EQ(agent.poll({&done, 1}), 1u);
  EXPECT_EQ(done.start_ns, 1500u);
  EXPECT_EQ(done.done_ns, 2200u);
}

}  // namespace
}  // namespace tierd
