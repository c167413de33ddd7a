// What was active in a recorded run, as the tensors that the predictor `oracle` reads.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/watch/trace/reader.h"

namespace tierd {

// Writes a safetensors file; it appears under its name only when it is whole. For each predicted site it has
// SITE.rows, SITE.counts and SITE.neurons, see plugins/predictor/oracle. Errors: of the trace, or of the
// disk.
Status write_truth(TraceReader& trace, const std::string& path);

}  // namespace tierd
