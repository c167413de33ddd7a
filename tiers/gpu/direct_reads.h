// Direct reads: the part of a GPU's agent that reads the store into the device's memory. It is the flash
// agent over one of two paths. If the device can read by itself (cuFile), it does; else the flash agent reads
// into memory of the host, and the device copies from there. Messages, their order and their errors are the
// flash agent's in both cases.
#pragma once

#include "core/agent/agent_entry.h"
#include "tiers/gpu/device.h"

namespace tierd {

// Returns the flash agent as a MadeAgent: `agent`, `backend`, `reading` and `counts`. The context must have a
// ReadTask; the device must outlive the agent. Errors: those of opening the store's file; unsupported, if the
// device has no direct path; no_space.
Result<MadeAgent> make_direct_reads(const AgentContext& context, Device& device, uint32_t credits);

}  // namespace tierd
