// The memory of the process beside the budgets of its tiers, and the memory left for these.
#pragma once

#include <cstdint>

#include "core/store/manifest.h"
#include "core/system/memory_limits.h"

namespace tierd {

// Returns the bytes that the process will still allocate after the store is open and before its tiers are
// made: code, stacks, tokenizer, buffers of the device, and the kernel's tables, which grow with the neurons
// and the memories that may hold them. tests/bench/memory_groups checks it.
uint64_t process_bytes(const Manifest& manifest, uint64_t memories);

// Returns the memory that the tightest limit leaves for the tiers of a process with `threads` threads: less
// the reserve, and less the memory of the process itself.
MemoryLimit memory_for_tiers(const Manifest& manifest, uint64_t memories, uint32_t threads);

}  // namespace tierd
