// Converts a trace to Chrome's trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing show.
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

// Writes everything that a trace contains: it lacks the predictor's time and the idle times. Errors: those of
// the trace; io_error naming `name`, the destination of `out`.
Status write_timeline(TraceReader& trace, const StepRange& steps, std::FILE* out, const std::string& name);

}  // namespace tierd
