// Writes a trace without computing: the active neurons of its tokens are drawn (tools/lab/activity). It
// serves questions about activity alone: what a window would hold, what caches would keep.
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
  uint32_t text = 0;  // other texts have other context and events, with the same neurons
  bool by_depth = false;
};

// Draws the feed-forward networks of a shape, as bundles of f16, a step for each token of one sequence. The
// header describes one memory with room for all of them. The active set is known in every pass, as if a
// preceding segment had chosen it, so that no predictor is called. The file appears under its name only when
// it is complete. Errors: those of profile and shape; unsupported, for a mixture; no_space, io_error.
Status write_drawn(const DrawOptions& options, const std::string& path);

}  // namespace tierd
