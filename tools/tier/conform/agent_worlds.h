// The worlds for agents that promise an operation.
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/result.h"
#include "core/strategy/agent_file.h"
#include "tools/tier/conform/agent_suite.h"

namespace tierd {

// For an agent that reads: the extents of the file are whole blocks, or packed.
Result<std::unique_ptr<AgentWorld>> blocks_world(const AgentChoice& choice, uint64_t seed);
Result<std::unique_ptr<AgentWorld>> packed_world(const AgentChoice& choice, uint64_t seed);
// For an agent that computes.
Result<std::unique_ptr<AgentWorld>> compute_world(const AgentChoice& choice, uint64_t seed);

}  // namespace tierd
