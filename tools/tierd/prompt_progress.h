// The progress of a long prompt.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/progress.h"
#include "core/engine/session.h"

namespace tierd {

// Calls Session::append and shows tokens, rate and remaining time on standard error. A short prompt shows
// nothing.
inline Result<std::span<const float>> append_prompt(Session& session, std::span<const uint32_t> tokens,
                                                    bool quiet) {
  Progress progress("prompt", tokens.size(), quiet, "tokens");
  auto logits = session.append(tokens, [&](size_t fed) { progress.advance(fed); });
  if (logits.ok() && progress.shown()) progress.finish();
  return logits;
}

}  // namespace tierd
