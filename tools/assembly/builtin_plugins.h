// The strategies that are linked into the programs.
#pragma once

#include <span>

#include "tierd/plugin.h"

namespace tierd {

std::span<const tierd_plugin* const> builtin_plugins();

}  // namespace tierd
