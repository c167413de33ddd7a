// What a memory cgroup may use and what it has used.
#pragma once

#include <cstdint>
#include <optional>

#include "core/system/control_group.h"

namespace tierd {

struct MemoryGroupUse {
  std::optional<uint64_t> limit_bytes;  // none: unlimited
  uint64_t peak_bytes = 0;              // of the whole group since it was made, page cache included
};
// Nothing where the group's files are not to be read.
std::optional<MemoryGroupUse> read_use(const ControlGroup& group);

// What of the group's limit is in use, 0 to 1; pages of files that nobody used of late are not counted, since
// they go by themselves. Nothing without a limit, and where the files are not to be read.
std::optional<double> used_share(const ControlGroup& group);

// How many bytes more the group may hold: pages of files go by themselves, unless they have yet to be
// written. Nothing without a limit (of version 2 the lesser of memory.max and memory.high), and where the
// files are not to be read.
std::optional<uint64_t> left_bytes(const ControlGroup& group);
// Returns what the group of this process uses.
std::optional<MemoryGroupUse> memory_group_use();

}  // namespace tierd
