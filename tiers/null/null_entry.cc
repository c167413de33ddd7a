// agent-null.so
#include "core/agent/agent_entry.h"
#include "tiers/null/null_agent.h"

namespace tierd {
namespace {

constexpr tierd_param kParams[] = {
    {"credits", TIERD_PARAM_INTEGER, 0, "64", 1, 4096, nullptr, "messages in flight at once"},
};

Result<MadeAgent> make(const AgentContext& context) {
  const auto credits = static_cast<uint32_t>(context.get<int64_t>("credits"));
  return MadeAgent{std::make_unique<NullAgent>(credits)};
}

}  // namespace
}  // namespace tierd

// It promises no operation.
TIERD_AGENT("null", "completes every message without doing anything", 0, tierd::kParams, tierd::make)
