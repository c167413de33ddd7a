// Compares the distributions of the next token between several runs of one model, over a text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/engine/engine.h"
#include "tools/evaluation/loss.h"
#include "tools/tier/compare/reference_thread.h"

namespace tierd {

// A run that reads the text, and the tokens that one of its steps processes.
struct Contestant {
  Engine* engine = nullptr;
  uint32_t step_tokens = 1;
};

struct Contest {
  Contestant subject;                   // as configured
  Contestant store;                     // the subject's store, all neurons used
  std::optional<Contestant> published;  // the file as published; empty: its values equal the store's
};

struct Verdict {
  Loss subject;                      // the subject against its store
  std::optional<Loss> published;     // the subject against the file as published
  std::optional<Loss> store_itself;  // the store against the file as published

  uint64_t tokens() const { return subject.tokens(); }
};

// Feeds each window to every run from an empty context and compares the logits after each token. The caller's
// thread drives the subject; `thread`, on which the references were made, drives those. `progress` receives
// the number of tokens that all runs have processed since its last call. Errors: those of Engine::step.
Result<Verdict> compare_on(const Contest& contest, ReferenceThread& thread,
                           const std::vector<std::vector<uint32_t>>& windows,
                           const std::function<void(uint64_t)>& progress);

}  // namespace tierd
