// What the process needs beside the budgets of its tiers, and what is left for these.
#pragma once

#include <cstdint>

#include "core/store/manifest.h"
#include "core/system/memory_limits.h"

namespace tierd {

// Bytes that the process will still take when a store is open and before its tiers are made: code, stacks,
// tokenizer, buffers of the device, and the kernel's tables, which grow with the neurons and the memories
// that may hold them. tests/bench/memory_groups tries it.
uint64_t process_bytes(const Manifest& manifest, uint64_t memories);

// What the tightest limit leaves for the tiers of a process with so many threads: less the reserve, and less
// what the process will take itself.
MemoryLimit memory_for_tiers(const Manifest& manifest, uint64_t memories, uint32_t threads);

}  // namespace tierd
