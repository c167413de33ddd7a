// `tier-train gate`: the gate projections of a model, for the predictor `gate`, which is exact.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

// Writes layers.N.ffn.gate [d_ff x d_model] of each layer in the model's own encoding and, where the model
// has a bias, layers.N.ffn.bias [d_ff] in f32. The file appears under its name when it is whole. Errors:
// unsupported for a model without gates or with quantized ones; those of reading; no_space, io_error.
Status write_gates(const TensorSource& source, const std::string& path, bool quiet);

}  // namespace tierd
