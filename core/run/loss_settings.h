// The settings by which a loss that was measured for one run is found again by another.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "core/run/measured_loss.h"
#include "core/run/run_plan.h"

namespace tierd {

// Whether text of the run may differ from that of the file as published, beyond rounding: a strategy is lossy
// as it is set, or the store has weights in another encoding than the file. Activations as int8 do not count.
bool is_lossy(const RunPlan& plan);

// Returns the settings of the run by which its loss is kept and found. `measure_every`: as the user has it,
// which a tool that measures may have changed in the plan. Error: that of File, for tensors of a strategy
// that cannot be read any more.
Result<LossSettings> loss_settings(const RunPlan& plan, uint32_t measure_every);

}  // namespace tierd
