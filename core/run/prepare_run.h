// Prepares a run: its plan and its store.
#pragma once

#include "core/base/result.h"
#include "core/run/run_plan.h"

namespace tierd {

// Returns the plan of a run (plan_run with the same arguments) with its store, which is made, with progress,
// unless it exists. Everything that can be refused is refused before anything is written, also by strategies
// (tensors of another model, for example). The store of a shape without weights is never made; error, if the
// run computes: unsupported. Other errors: those of plan_run, Runtime::create and write_store.
Result<RunPlan> with_store(RunPlan plan, const Config& config, const RuntimeOptions& options);

// Returns the plan with the compressed sizes of neurons, for a store that compresses and is not made: reads
// the whole model, writes nothing, and keeps the sizes in `options`. Errors: those of plan_run and of the
// codec; invalid_argument, if nothing would get smaller.
Result<RunPlan> with_counted_store(RunPlan plan, const Config& config, RuntimeOptions& options);

// Plans a run, and makes its store.
Result<RunPlan> prepare_run(const Config& config, const RuntimeOptions& options);

}  // namespace tierd
