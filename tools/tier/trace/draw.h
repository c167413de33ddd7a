// A trace of which nothing was computed: what is active in its tokens is drawn (tools/lab/activity). For
// questions about activity alone: what a window would hold, what caches would keep.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"

namespace tierd {

struct DrawOptions {
  std::string profile;
  std::string shape;
  uint32_t tokens = 0;
  uint64_t seed = 1;
  uint32_t text = 0;  // others are of other context and events, with the same neurons
  bool by_depth = false;
};

// Draws the feed-forward networks of a shape, as bundles of f16, a step for each token of one sequence. The
// header describes one memory with room for all of them. What is active is known in every pass, as if a
// segment before had chosen it, so that no predictor is asked. The file appears under its name only when it
// is whole. Errors: those of profile and shape; unsupported, for a mixture; no_space, io_error.
Status write_drawn(const DrawOptions& options, const std::string& path);

}  // namespace tierd
