// Measures how fast the kernels of tiers/compute multiply on this machine.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/time/machine.h"

namespace tierd {

// Measures each encoding with the best kernels of this processor on `threads` threads, in consecutive calls
// and after pauses; each rate for `seconds`. Error: no_space, if memory or threads are not available.
Result<std::vector<KernelRate>> measure_kernels(uint32_t threads, double seconds);

}  // namespace tierd
