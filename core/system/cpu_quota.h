// How much processor time the cgroups of this process let it have.
#pragma once

#include <optional>

#include "core/system/control_group.h"

namespace tierd {

// Processors' worth of time (1.5: so many seconds each second). Nothing without a limit, and where the
// group's files are not to be read.
std::optional<double> cpu_quota(const ControlGroup& group);

// The least of this process's group and of those above it.
std::optional<double> own_cpu_quota();

}  // namespace tierd
