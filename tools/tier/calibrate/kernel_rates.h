// How fast the kernels of tiers/compute multiply on this machine.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/time/machine.h"

namespace tierd {

// Each encoding with the best kernels of this processor on `threads` threads, one call after the other, and
// after pauses; each rate for `seconds`. Errors: no_space, when memory or threads are not to be had.
Result<std::vector<KernelRate>> measure_kernels(uint32_t threads, double seconds);

}  // namespace tierd
