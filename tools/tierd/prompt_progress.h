// A prompt that takes long says how far it is.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/progress.h"
#include "core/engine/session.h"

namespace tierd {

// Session::append with tokens, rate and the time left on standard error; nothing where it is over in a
// moment.
inline Result<std::span<const float>> append_prompt(Session& session, std::span<const uint32_t> tokens,
                                                    bool quiet) {
  Progress progress("prompt", tokens.size(), quiet, "tokens");
  auto logits = session.append(tokens, [&](size_t fed) { progress.advance(fed); });
  if (logits.ok() && progress.shown()) progress.finish();
  return logits;
}

}  // namespace tierd
