// From a configuration to a run that can begin.
#pragma once

#include "core/base/result.h"
#include "core/run/run_plan.h"

namespace tierd {

// The plan of a run (plan_run with the same arguments) with its store, which is made with progress unless it
// stands. Whatever can be refused is refused before anything is written, what a strategy refuses (tensors of
// another model, say) as well. That of a shape is never made; error, where the run computes: unsupported.
// Errors besides: those of plan_run, Runtime::create and write_store.
Result<RunPlan> with_store(RunPlan plan, const Config& config, const RuntimeOptions& options);

// The same plan with the sizes that neurons will have in a store that compresses them and is not made: all of
// the model is read, nothing is written. `options` know them from then on. Errors: those of plan_run and of
// the codec; invalid_argument, where nothing would get smaller.
Result<RunPlan> with_counted_store(RunPlan plan, const Config& config, RuntimeOptions& options);

// A plan, and its store.
Result<RunPlan> prepare_run(const Config& config, const RuntimeOptions& options);

}  // namespace tierd
