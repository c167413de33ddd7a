// Predicts the bytes that a decoded token will move.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/run/forecast.h"
#include "core/run/runtime.h"
#include "core/run/traffic.h"
#include "tools/tierd/machine_rates.h"

namespace tierd {

// Bytes a token after caches have settled. Empty numbers are unknown; `why_unknown` has the reason.
struct TokenBytes {
  std::optional<double> flash;
  std::vector<std::optional<double>> links;  // [links of the topology]
  std::string why_unknown;
};

struct PlayedBytes {
  Result<Forecast> played;
  TokenBytes bytes;
};

// Plays the run in virtual time on the machine of `rates`, and again with a slower and a faster disk. Caches
// that prefetch drop neurons that arrive late, so bytes may depend on whether reading or computing finishes
// first; such bytes are unknown. So are those of small neurons on a disk that was not measured, because they
// are read together with the gaps between them. Where activations decide, only a link without any bytes is
// known. `runtime` must be new and made with `options` to be played on that machine. Errors: those of
// plan_run and Runtime::create.
Result<PlayedBytes> foretell_bytes(Runtime& runtime, const RuntimeOptions& options,
                                   const PlannedTraffic& traffic, const MachineRates& rates);

// Returns the machine with the read curve of the run's reads. A store that is too small to measure gaps on is
// read without gaps.
MachineDescription machine_to_play_on(const RunPlan& plan, const MachineRates& rates);

}  // namespace tierd
