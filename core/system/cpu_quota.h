// The processor time that the cgroups of this process allow.
#pragma once

#include <optional>

#include "core/system/control_group.h"

namespace tierd {

// Returns the quota in processors (1.5: 1.5 s of processor time each second). Nothing without a limit, or if
// the group's files cannot be read.
std::optional<double> cpu_quota(const ControlGroup& group);

// Returns the lowest quota of this process's group and of those above it.
std::optional<double> own_cpu_quota();

}  // namespace tierd
