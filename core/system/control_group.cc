#include "core/system/control_group.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "core/system/system_file.h"

namespace tierd {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

bool lists(const std::string& options, std::string_view wanted) {
  for (const std::string& option : split(options, ',')) {
    if (option == wanted) return true;
  }
  return false;
}

}  // namespace

std::optional<ControlGroup> find_control_group(std::string_view mounts, std::string_view groups,
                                               std::string_view controller) {
  std::string v1_mount, v2_mount;
  for (const std::string& line : split(mounts, '\n')) {
    const std::vector<std::string> fields = split(line, ' ');  // device, folder, type, options
    if (fields.size() < 4) continue;
    if (fields[2] == "cgroup" && lists(fields[3], controller)) v1_mount = fields[1];
    if (fields[2] == "cgroup2") v2_mount = fields[1];
  }
  for (const bool v2 : {false, true}) {
    const std::string& mount = v2 ? v2_mount : v1_mount;
    if (mount.empty()) continue;
    for (const std::string& line : split(groups, '\n')) {  // number:controllers:path
      const size_t first = line.find(':');
      const size_t second = line.find(':', first + 1);
      if (first == std::string::npos || second == std::string::npos) continue;
      const std::string controllers = line.substr(first + 1, second - first - 1);
      if (v2 ? controllers.empty() : lists(controllers, controller)) {
        const std::string path = line.substr(second + 1);
        return ControlGroup{path == "/" ? mount : mount + path, v2, mount};
      }
    }
  }
  return {};
}

std::vector<ControlGroup> with_those_above(const ControlGroup& group) {
  std::vector<ControlGroup> groups = {group};
  for (std::string directory = group.directory; directory.size() > group.mount.size();) {
    directory.resize(std::max(group.mount.size(), directory.rfind('/')));
    groups.push_back({directory, group.v2, group.mount});
  }
  return groups;
}

// In a container without its own namespace the path is the host's, and the mount has only the container's
// group.
std::optional<ControlGroup> own_control_group(std::string_view controller) {
  auto group = find_control_group(read_system_file("/proc/self/mounts"),
                                  read_system_file("/proc/self/cgroup"), controller);
  if (group && ::access(group->directory.c_str(), F_OK) != 0) group->directory = group->mount;
  return group;
}

}  // namespace tierd
