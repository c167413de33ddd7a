#include "core/system/cpu_quota.h"

#include <algorithm>
#include <sstream>

#include "core/system/system_file.h"

namespace tierd {

std::optional<double> cpu_quota(const ControlGroup& group) {
  const std::string text = group.v2 ? read_system_file(group.directory + "/cpu.max")
                                    : read_system_file(group.directory + "/cpu.cfs_quota_us") + " " +
                                          read_system_file(group.directory + "/cpu.cfs_period_us");
  std::istringstream numbers(text);
  double quota = 0, period = 0;
  // Version 2 has "max" for no limit, version 1 has -1.
  if (!(numbers >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<double> own_cpu_quota() {
  const auto own = own_control_group("cpu");
  std::optional<double> least;
  if (!own) return least;
  for (const ControlGroup& group : with_those_above(*own)) {
    const auto quota = cpu_quota(group);
    if (quota) least = std::min(least.value_or(*quota), *quota);
  }
  return least;
}

}  // namespace tierd
