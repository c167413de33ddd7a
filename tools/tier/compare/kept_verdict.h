// The verdict of a comparison, kept beside the model, where tierd finds it.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/run/loss_settings.h"
#include "core/run/measured_loss.h"
#include "core/run/runtime.h"
#include "tools/tier/compare/comparison.h"

namespace tierd {

// How the verdict was obtained.
struct VerdictFacts {
  std::string text;            // the path of the text
  bool against_store = false;  // the file as published has other values than the store, and was not run
  bool as_decoding = true;     // rows of one step do not change which neurons are used
};

struct KeptVerdict {
  std::string path;     // of its file; empty: it was not stored
  std::string why_not;  // empty too if the configuration is lossless, so that there is nothing to store
};

// `settings`: those of the subject; empty for a configuration that is not lossy. Error: that of
// read_whole_file, for a text that cannot be read a second time. A failure to write the verdict is returned
// in `why_not`.
Result<KeptVerdict> keep_verdict(const Runtime& subject, const std::optional<LossSettings>& settings,
                                 const Verdict& verdict, const VerdictFacts& facts);

}  // namespace tierd
