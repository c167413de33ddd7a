// Writes the neurons that were active in a recorded run as the tensors that the predictor `oracle` reads.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/watch/trace/reader.h"

namespace tierd {

// Writes a safetensors file, which appears under its name only when it is complete. For each predicted site
// it has SITE.rows, SITE.counts and SITE.neurons, see tools/lab/predictors/oracle. Errors: those of the trace
// and of the disk.
Status write_truth(TraceReader& trace, const std::string& path);

}  // namespace tierd
