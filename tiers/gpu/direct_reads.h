// The part of a GPU's agent that reads the store into the device's memory: the flash agent over one of two
// ways. Where the device reads by itself (cuFile), it is asked to; else the flash agent reads into memory of
// the host, from which the device copies. Messages, their order and their errors are the flash agent's either
// way.
#pragma once

#include "core/agent/agent_entry.h"
#include "tiers/gpu/device.h"

namespace tierd {

// Returns the flash agent as MadeAgent has it: `agent`, `backend`, `reading` and `counts`. The context has a
// ReadTask; the device outlives the agent. Errors: those of opening the store's file; unsupported, of a
// device that has no direct path; no_space.
Result<MadeAgent> make_direct_reads(const AgentContext& context, Device& device, uint32_t credits);

}  // namespace tierd
