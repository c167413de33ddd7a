// The suite of all agents, over a real file, for each device.
#include "tests/conformance/agent_suite.h"
#include "tests/flash/flash_world.h"
#include "tiers/flash/flash_agent.h"

namespace tierd {
namespace {

class ReadWorld final : public AgentWorld {
 public:
  ReadWorld(uint64_t seed, DeviceKind kind) : world_(seed) {
    auto device = open_device(world_.path(), {.kind = kind, .depth = 8});
    device.value()->register_memory(world_.memory());
    agent_ = std::make_unique<FlashAgent>(FlashWorld::kAgent, world_.pools(), std::move(device).value(),
                                          world_.table(), FlashOptions{.credits = 24});
  }
  Agent& agent() override { return *agent_; }
  Message work() override { return world_.random_read(); }
  Message control(Op op, const MessageId& target) override {
    return op == Op::cancel ? world_.naming(op, target) : world_.plain(op);
  }
  void completed(const Message& message, const Done& done) override {
    if (message.op == Op::read) world_.expect_landed(message, done.n_done);
    world_.release(message);
  }

 private:
  FlashWorld world_;
  std::unique_ptr<FlashAgent> agent_;
};

AgentCase over(const char* name, DeviceKind kind) {
  return {name, [kind](uint64_t seed) { return std::make_unique<ReadWorld>(seed, kind); }};
}
INSTANTIATE_TEST_SUITE_P(Flash, AgentConformance,
                         testing::Values(over("io_uring", DeviceKind::io_uring),
                                         over("pread", DeviceKind::pread)),
                         case_name);

}  // namespace
}  // namespace tierd
