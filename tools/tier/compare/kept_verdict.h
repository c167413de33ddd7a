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

// How the verdict came about.
struct VerdictFacts {
  std::string text;            // the path of the text
  bool against_store = false;  // the values of the file as published are others than those of the store, and
                               // it was not run
  bool as_decoding = true;     // rows of one step did not change what is used
};

struct KeptVerdict {
  std::string path;     // of its file; empty: it was not kept
  std::string why_not;  // empty as well: the configuration loses nothing, so that there is nothing to keep
};

// `settings`: of the subject; none for a configuration that is not lossy. Error: that of read_text_file, for
// a text that cannot be read a second time. What keeps the verdict from being written is no error.
Result<KeptVerdict> keep_verdict(const Runtime& subject, const std::optional<LossSettings>& settings,
                                 const Verdict& verdict, const VerdictFacts& facts);

}  // namespace tierd
