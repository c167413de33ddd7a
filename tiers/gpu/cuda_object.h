// The shared object with the backend `cuda`, if it was built.
#pragma once

#include "core/base/result.h"
#include "tiers/gpu/cuda/cuda_backend.h"

namespace tierd {

// Loads the object once; it stays loaded. Errors: not_found, if this tierd was built without it;
// plugin_fault, if it belongs to another build; invalid_argument, if other users can write to it.
Result<const cuda::Backend*> load_cuda();

}  // namespace tierd
