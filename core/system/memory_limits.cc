#include "core/system/memory_limits.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "core/base/units.h"
#include "core/system/system_file.h"

namespace tierd {
namespace {

constexpr uint64_t kReserveShare = 32;

// Reads a line such as "MemAvailable:   23014876 kB"; returns bytes.
std::optional<uint64_t> field(std::string_view text, const std::string& name) {
  const std::string wanted = name + ":";
  for (size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted, at + 1)) {
    if (at != 0 && text[at - 1] != '\n') continue;
    const size_t begin = text.find_first_not_of(" \t", at + wanted.size());
    uint64_t kib = 0;
    if (begin == std::string_view::npos) return {};
    const auto read = std::from_chars(text.data() + begin, text.data() + text.size(), kib);
    if (read.ec != std::errc() || kib > (UINT64_MAX >> 10)) return {};
    return kib << 10;
  }
  return {};
}

}  // namespace

MemoryFacts read_memory_facts() {
  MemoryFacts facts;
  facts.meminfo = read_system_file("/proc/meminfo");
  struct sysinfo machine {};
  if (facts.meminfo.empty() && ::sysinfo(&machine) == 0)  // no /proc: reclaimable page cache is not counted
    facts.meminfo = fmt::format("MemAvailable: {} kB\n", uint64_t{machine.freeram} * machine.mem_unit / 1024);
  facts.status = read_system_file("/proc/self/status");
  if (const auto group = own_control_group("memory")) facts.groups = with_those_above(*group);
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0) facts.address_space = limit.rlim_cur;
  if (::getrlimit(RLIMIT_DATA, &limit) == 0) facts.data = limit.rlim_cur;
  return facts;
}

std::vector<MemoryLimit> memory_limits(const MemoryFacts& facts) {
  std::vector<MemoryLimit> limits;
  if (const auto available = field(facts.meminfo, "MemAvailable"))
    limits.push_back({"this machine (MemAvailable)", *available});
  for (const ControlGroup& group : facts.groups) {
    if (const auto left = left_bytes(group)) limits.push_back({"the cgroup " + group.directory, *left});
  }
  const auto add = [&](const char* source, rlim_t limit, const char* used, MemoryLimit::Counts counts) {
    if (limit == RLIM_INFINITY) return;
    const uint64_t taken = field(facts.status, used).value_or(0);
    limits.push_back({source, limit - std::min<uint64_t>(limit, taken), counts});
  };
  add("ulimit -v", facts.address_space, "VmSize", MemoryLimit::Counts::addresses);
  add("ulimit -d", facts.data, "VmData", MemoryLimit::Counts::data);
  return limits;
}

std::vector<MemoryLimit> memory_limits() {
  return memory_limits(read_memory_facts());
}

uint64_t less_reserve(uint64_t bytes) {
  return bytes - bytes / kReserveShare;
}

MemoryLimit tightest(const std::vector<MemoryLimit>& limits) {
  const auto least = std::ranges::min_element(limits, {}, &MemoryLimit::left_bytes);
  return least == limits.end() ? MemoryLimit{"nobody", UINT64_MAX} : *least;
}

MemoryLimit memory_left() {
  MemoryLimit limit = tightest(memory_limits());
  limit.left_bytes = less_reserve(limit.left_bytes);
  return limit;
}

Status expect_memory(uint64_t bytes, const std::string& origin) {
  const MemoryLimit limit = memory_left();
  if (bytes <= limit.left_bytes) return {};
  return Error{
      Code::no_space, origin,
      fmt::format("about {} of memory are needed, but {} leaves {}", format_bytes(static_cast<double>(bytes)),
                  limit.source, format_bytes(static_cast<double>(limit.left_bytes)))};
}

bool addresses_are_limited() {
  return std::ranges::any_of(
      memory_limits(), [](const MemoryLimit& limit) { return limit.counts != MemoryLimit::Counts::pages; });
}

}  // namespace tierd
