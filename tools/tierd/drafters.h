// Who guesses tokens for a model to check: what [speculation] names.
#pragma once

#include <memory>
#include <vector>

#include "core/engine/drafter.h"
#include "core/run/runtime.h"

namespace tierd {

struct Drafters {
  std::unique_ptr<Runtime> model;  // that they guess with, if they have one
  // One for each text that is continued at a time; empty: nobody guesses.
  std::vector<std::unique_ptr<Drafter>> each;

  std::vector<Drafter*> list() const;
};

// Loads the draft model, all of it in memory, where the configuration of `plan` names one. Errors: those of a
// model and its run; invalid_argument where its vocabulary is another one.
Result<Drafters> start_drafters(const RunPlan& plan, uint32_t texts, bool quiet);

}  // namespace tierd
