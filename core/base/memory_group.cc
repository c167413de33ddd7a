#include "core/base/memory_group.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <vector>

#include "core/base/system_file.h"

namespace tierd {
namespace {

constexpr uint64_t kUnlimited = uint64_t{1} << 62;  // version 1 says "no limit" by a number above this

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

std::optional<uint64_t> read_number(const std::string& path) {
  const std::string text = read_system_file(path);
  uint64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) return {};
  return number;
}

// "max" of version 2 is no number.
std::optional<uint64_t> read_limit(const MemoryGroup& group) {
  const auto limit = read_number(group.directory + (group.v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  return limit && *limit >= kUnlimited ? std::nullopt : limit;
}

std::optional<uint64_t> read_usage(const MemoryGroup& group) {
  return read_number(group.directory + (group.v2 ? "/memory.current" : "/memory.usage_in_bytes"));
}

// Reads a number of memory.stat that counts the group and those below it. `name` is that of version 2, from
// which that of version 1 is derived.
uint64_t read_stat(const MemoryGroup& group, std::string name) {
  if (!group.v2) name = "total_" + (name.starts_with("file_") ? name.substr(5) : name);
  for (const std::string& line : split(read_system_file(group.directory + "/memory.stat"), '\n')) {
    if (!line.starts_with(name + " ")) continue;
    uint64_t bytes = 0;
    (void)std::from_chars(line.data() + name.size() + 1, line.data() + line.size(), bytes);
    return bytes;
  }
  return 0;
}

}  // namespace

std::optional<MemoryGroup> find_memory_group(std::string_view mounts, std::string_view groups) {
  std::string v1_mount, v2_mount;
  for (const std::string& line : split(mounts, '\n')) {
    const std::vector<std::string> fields = split(line, ' ');  // device, folder, type, options
    if (fields.size() < 4) continue;
    if (fields[2] == "cgroup" && lists(fields[3], "memory")) v1_mount = fields[1];
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
      if (v2 ? controllers.empty() : lists(controllers, "memory")) {
        const std::string path = line.substr(second + 1);
        return MemoryGroup{path == "/" ? mount : mount + path, v2, mount};
      }
    }
  }
  return {};
}

std::optional<MemoryGroupUse> read_use(const MemoryGroup& group) {
  const auto peak = read_number(group.directory + (group.v2 ? "/memory.peak" : "/memory.max_usage_in_bytes"));
  if (!peak) return {};
  return MemoryGroupUse{read_limit(group), *peak};
}

std::optional<double> used_share(const MemoryGroup& group) {
  const auto limit = read_limit(group);
  const auto used = read_usage(group);
  if (!limit || *limit == 0 || !used) return {};
  const uint64_t idle = read_stat(group, "inactive_file");
  return static_cast<double>(*used - std::min(*used, idle)) / static_cast<double>(*limit);
}

std::optional<uint64_t> left_bytes(const MemoryGroup& group) {
  std::optional<uint64_t> limit = read_limit(group);
  const auto high = group.v2 ? read_number(group.directory + "/memory.high") : std::nullopt;
  if (high) limit = std::min(limit.value_or(*high), *high);
  const auto used = read_usage(group);
  if (!limit || !used) return {};
  const uint64_t files = read_stat(group, "inactive_file") + read_stat(group, "active_file");
  const uint64_t unwritten = read_stat(group, "file_dirty") + read_stat(group, "file_writeback");
  const uint64_t go = std::min(*used, files - std::min(files, unwritten));
  return *limit - std::min(*limit, *used - go);
}

std::vector<MemoryGroup> with_those_above(const MemoryGroup& group) {
  std::vector<MemoryGroup> groups = {group};
  for (std::string directory = group.directory; directory.size() > group.mount.size();) {
    directory.resize(std::max(group.mount.size(), directory.rfind('/')));
    groups.push_back({directory, group.v2, group.mount});
  }
  return groups;
}

// In a container that has no view of its own (a namespace), the path is the host's, and the mount shows the
// container's group alone.
std::optional<MemoryGroup> own_memory_group() {
  auto group =
      find_memory_group(read_system_file("/proc/self/mounts"), read_system_file("/proc/self/cgroup"));
  if (group && ::access(group->directory.c_str(), F_OK) != 0) group->directory = group->mount;
  return group;
}

std::optional<MemoryGroupUse> memory_group_use() {
  const auto group = own_memory_group();
  return group ? read_use(*group) : std::nullopt;
}

}  // namespace tierd
