// The drafters of a run: they guess tokens, as [speculation] configures, for the model to check.
#pragma once

#include <memory>
#include <vector>

#include "core/engine/drafter.h"
#include "core/run/runtime.h"

namespace tierd {

struct Drafters {
  std::unique_ptr<Runtime> model;  // the draft model, if there is one
  // One drafter for each text that is generated at a time. Empty: no drafter is configured.
  std::vector<std::unique_ptr<Drafter>> each;

  std::vector<Drafter*> list() const;
};

// Loads the draft model into memory as a whole, where the plan's configuration names one. Errors: those of a
// model and its run; invalid_argument where its vocabulary differs.
Result<Drafters> start_drafters(const RunPlan& plan, uint32_t texts, bool quiet);

}  // namespace tierd
