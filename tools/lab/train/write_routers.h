// `tier-train router`: the routers of a mixture, for the predictor `router`, which looks ahead with them.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

// Writes layers.N.experts.router [experts x d_model] of each layer in f32. The file appears under its name
// when it is whole. Errors: unsupported for a model without experts; those of reading; no_space, io_error.
Status write_routers(const TensorSource& source, const std::string& path);

}  // namespace tierd
