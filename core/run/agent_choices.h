// From what a configuration names to agents that are loaded and checked.
#pragma once

#include "core/base/result.h"
#include "core/config/config.h"
#include "core/host/agent_file.h"

namespace tierd {

struct AgentChoices {
  AgentChoice flash;
  AgentChoice dram;
};

// The agents of all tiers. Errors name file or key; invalid_argument besides for an agent that does not serve
// what its tier is for.
Result<AgentChoices> choose_agents(const Config& config);

}  // namespace tierd
