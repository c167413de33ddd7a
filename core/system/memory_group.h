// Limit and use of a memory cgroup.
#pragma once

#include <cstdint>
#include <optional>

#include "core/system/control_group.h"

namespace tierd {

struct MemoryGroupUse {
  std::optional<uint64_t> limit_bytes;  // none: unlimited
  uint64_t peak_bytes = 0;              // peak of the whole group since its creation, page cache included
};
// Returns nothing if the group's files cannot be read.
std::optional<MemoryGroupUse> read_use(const ControlGroup& group);

// Returns the used share of the group's limit, 0 to 1, without inactive pages of files, which the kernel
// reclaims by itself. Nothing without a limit, or if the files cannot be read.
std::optional<double> used_share(const ControlGroup& group);

// Returns the bytes that the group may still allocate. Clean pages of files count as free, because the kernel
// reclaims them. Nothing without a limit (in version 2 the lesser of memory.max and memory.high), or if the
// files cannot be read.
std::optional<uint64_t> left_bytes(const ControlGroup& group);
// Returns the use of this process's group.
std::optional<MemoryGroupUse> memory_group_use();

}  // namespace tierd
