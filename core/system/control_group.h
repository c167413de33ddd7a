// The cgroups that this process runs in.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tierd {

struct ControlGroup {
  std::string directory;
  bool v2 = false;
  std::string mount = {};  // of the hierarchy: `directory` is there or below
};
// `mounts` as in /proc/self/mounts, `groups` as in /proc/self/cgroup. A version 1 hierarchy with the
// controller comes before version 2.
std::optional<ControlGroup> find_control_group(std::string_view mounts, std::string_view groups,
                                               std::string_view controller);
// That of this process.
std::optional<ControlGroup> own_control_group(std::string_view controller);

// The group and those above it, up to the mount: whatever one of them does not allow, the process cannot
// have.
std::vector<ControlGroup> with_those_above(const ControlGroup& group);

}  // namespace tierd
