// The settings that identify the measured loss of a run.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "core/run/measured_loss.h"
#include "core/run/run_plan.h"

namespace tierd {

// Returns whether the run's text may differ from the published file's, beyond rounding: a strategy is lossy
// as configured, or weights of the store have another encoding. int8 activations do not count.
bool is_lossy(const RunPlan& plan);

// Returns the settings that are the key of the run's measured loss. `measure_every`: the user's value, which
// a measuring tool may have changed in the plan. Error: that of File, for tensors of a strategy that cannot
// be read any more.
Result<LossSettings> loss_settings(const RunPlan& plan, uint32_t measure_every);

}  // namespace tierd
