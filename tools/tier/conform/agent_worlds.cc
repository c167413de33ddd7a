// Chooses the worlds that tier-conform tries an agent in. Each follows from a seed and checks every byte of
// the memory that messages name.
#include "tools/tier/conform/agent_worlds.h"

#include <fmt/format.h>

#include <iterator>

#include "tools/tier/conform/placed_world.h"

namespace tierd {
namespace {

// Sends any messages to an agent that promises nothing.
class PlainWorld final : public PlacedWorld {
 public:
  static Result<std::unique_ptr<AgentWorld>> create(const AgentChoice& choice, uint64_t seed) {
    std::unique_ptr<PlainWorld> world(new PlainWorld(seed));
    AgentContext context{
        .number = kAgent, .table = "tiers.TIER", .pools = world->pools_, .clock = world->clock_};
    TIERD_TRY(world->make(choice, context));
    return std::unique_ptr<AgentWorld>(std::move(world));
  }
  bool promises() const override { return false; }
  Request work() override {
    constexpr Op kOps[] = {Op::read, Op::move, Op::run, Op::resize, Op::raise};
    Request request = control(kOps[random_.below(static_cast<uint32_t>(std::size(kOps)))], {});
    request.message.lane = static_cast<uint8_t>(random_.below(3));
    return request;
  }
  std::string completed(const Message& message, const Done&) override {
    places_.release(message.id.slot);
    return "";
  }

 private:
  static constexpr uint64_t kPlaceBytes = 256;
  explicit PlainWorld(uint64_t seed) : PlacedWorld(seed, kPlaceBytes) {}
};

}  // namespace

std::vector<AgentCase> agent_cases(const AgentChoice& choice) {
  std::vector<AgentCase> cases;
  const auto add = [&](const char* what, auto create) {
    cases.push_back({fmt::format("{}_{}", choice.entry->name, what),
                     [choice, create](uint64_t seed) { return create(choice, seed); }});
  };
  const uint32_t serves = choice.entry->serves;
  if ((serves & tierd::serves(Op::read)) != 0) {
    add("reads", blocks_world);
    add("reads_packed", packed_world);
  }
  if ((serves & tierd::serves(Op::run)) != 0) add("computes", compute_world);
  if (cases.empty()) add("promises_nothing", PlainWorld::create);
  return cases;
}

}  // namespace tierd
