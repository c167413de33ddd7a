// The memory cgroup that this process runs in, if any: what it may use and what it has used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tierd {

struct MemoryGroup {
  std::string directory;
  bool v2 = false;
  std::string mount = {};  // of the hierarchy: `directory` is there or below
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

// How many bytes more the group may hold: pages of files go by themselves, unless they have yet to be
// written. Nothing without a limit (of version 2 the lesser of memory.max and memory.high), and where the
// files are not to be read.
std::optional<uint64_t> left_bytes(const MemoryGroup& group);
// The group and those above it, up to the mount: whatever one of them does not allow, the process cannot
// have.
std::vector<MemoryGroup> with_those_above(const MemoryGroup& group);

// These two are about this process: the group that it is in, and what that group uses.
std::optional<MemoryGroup> own_memory_group();
std::optional<MemoryGroupUse> memory_group_use();

}  // namespace tierd
