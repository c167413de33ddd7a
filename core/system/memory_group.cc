#include "core/system/memory_group.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <vector>

#include "core/system/system_file.h"

namespace tierd {
namespace {

constexpr uint64_t kUnlimited = uint64_t{1} << 62;  // version 1 expresses "no limit" as a number above this

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::optional<uint64_t> read_number(const std::string& path) {
  const std::string text = read_system_file(path);
  uint64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) return {};
  return number;
}

// "max" of version 2 is not a number, so it reads as no limit.
std::optional<uint64_t> read_limit(const ControlGroup& group) {
  const auto limit = read_number(group.directory + (group.v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  return limit && *limit >= kUnlimited ? std::nullopt : limit;
}

std::optional<uint64_t> read_usage(const ControlGroup& group) {
  return read_number(group.directory + (group.v2 ? "/memory.current" : "/memory.usage_in_bytes"));
}

// Reads a number of memory.stat that includes the groups below. `name`: as in version 2.
uint64_t read_stat(const ControlGroup& group, std::string name) {
  if (!group.v2) name = "total_" + (name.starts_with("file_") ? name.substr(5) : name);
  for (const std::string& line : lines_of(read_system_file(group.directory + "/memory.stat"))) {
    if (!line.starts_with(name + " ")) continue;
    uint64_t bytes = 0;
    (void)std::from_chars(line.data() + name.size() + 1, line.data() + line.size(), bytes);
    return bytes;
  }
  return 0;
}

}  // namespace

std::optional<MemoryGroupUse> read_use(const ControlGroup& group) {
  const auto peak = read_number(group.directory + (group.v2 ? "/memory.peak" : "/memory.max_usage_in_bytes"));
  if (!peak) return {};
  return MemoryGroupUse{read_limit(group), *peak};
}

std::optional<double> used_share(const ControlGroup& group) {
  const auto limit = read_limit(group);
  const auto used = read_usage(group);
  if (!limit || *limit == 0 || !used) return {};
  const uint64_t idle = read_stat(group, "inactive_file");
  return static_cast<double>(*used - std::min(*used, idle)) / static_cast<double>(*limit);
}

std::optional<uint64_t> left_bytes(const ControlGroup& group) {
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

std::optional<MemoryGroupUse> memory_group_use() {
  const auto group = own_control_group("memory");
  return group ? read_use(*group) : std::nullopt;
}

}  // namespace tierd
