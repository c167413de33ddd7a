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
  std::string mount = {};  // mount point of the hierarchy: `directory` or a folder above it
};
// Finds the group of a controller. `mounts` is as in /proc/self/mounts, `groups` as in /proc/self/cgroup. A
// version 1 hierarchy with the controller takes precedence over version 2.
std::optional<ControlGroup> find_control_group(std::string_view mounts, std::string_view groups,
                                               std::string_view controller);
// The same for this process.
std::optional<ControlGroup> own_control_group(std::string_view controller);

// Returns the group and all groups above it, up to the mount: the limit of each applies to the process.
std::vector<ControlGroup> with_those_above(const ControlGroup& group);

}  // namespace tierd
