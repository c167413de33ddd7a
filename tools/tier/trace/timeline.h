// A trace as Chrome's trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing show.
#pragma once

#include <cstdint>
#include <cstdio>

#include "core/base/result.h"
#include "core/watch/trace/reader.h"

namespace tierd {

struct StepRange {
  uint32_t first = 0;
  uint32_t last = UINT32_MAX;
  bool contains(uint32_t step) const { return first <= step && step <= last; }
};

// What a trace knows of: not how long the predictor took, nor when there was nothing to do. Error: of the
// trace; io_error naming `name`, which is where `out` leads.
Status write_timeline(TraceReader& trace, const StepRange& steps, std::FILE* out, const std::string& name);

}  // namespace tierd
