// A timeline as Chrome's trace events (JSON), which Perfetto (ui.perfetto.dev) and chrome://tracing show.
#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/watch/timeline/timeline.h"

namespace tierd {

// The names of the numbers in slices.
struct TimelineNames {
  std::map<std::string, std::string> facts;  // for people: model, budget, threads …
  const SiteTable* sites = nullptr;
  std::vector<std::string> agents;  // agent n at n - 1
  uint64_t start_ns = 0;            // the origin of the picture's time
};

// Writes rows for steps, the passes of the kernel, the predictor, waits, and each agent's work, with reads
// separated by priority; overlapping slices of a row get rows of their own. A curve shows the bytes of reads
// in flight. Error: io_error naming `name`, the file of `out`.
Status write_chrome_trace(const Timeline& timeline, const TimelineNames& names, std::FILE* out,
                          const std::string& name);

}  // namespace tierd
