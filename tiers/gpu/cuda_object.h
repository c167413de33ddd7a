// The object with the backend `cuda`, if there is one beside this agent.
#pragma once

#include "core/base/result.h"
#include "tiers/gpu/cuda/cuda_backend.h"

namespace tierd {

// Loads it once; it stays loaded. Errors: not_found, where this tierd was built without it; plugin_fault,
// where it is of another build; invalid_argument, where others can write to it.
Result<const cuda::Backend*> load_cuda();

}  // namespace tierd
