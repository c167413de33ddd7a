// The memory cgroup that this process runs in, if any: what it may use and what it has used at most.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tierd {

struct MemoryGroup {
  std::string directory;
  bool v2 = false;
};
// `mounts` as in /proc/self/mounts, `groups` as in /proc/self/cgroup. A version 1 hierarchy with the memory
// controller comes before version 2.
std::optional<MemoryGroup> find_memory_group(std::string_view mounts, std::string_view groups);

struct MemoryGroupUse {
  std::optional<uint64_t> limit_bytes;  // none: unlimited
  uint64_t peak_bytes = 0;              // of the whole group since it was made, page cache included
};
// Nothing where the group's files are not to be read.
std::optional<MemoryGroupUse> read_use(const MemoryGroup& group);

// What of the group's limit is in use, 0 to 1; pages of files that nobody used of late are not counted, since
// they go by themselves. Nothing without a limit, and where the files are not to be read.
std::optional<double> used_share(const MemoryGroup& group);

// These two are about this process: the group that it is in, and what that group uses.
std::optional<MemoryGroup> own_memory_group();
std::optional<MemoryGroupUse> memory_group_use();

}  // namespace tierd
