// The bytes that a decoded token will move, as far as they can be foretold.
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

// Bytes once caches have settled. A number that is missing is unknown, and `why_unknown` has the reason.
struct TokenBytes {
  std::optional<double> flash;
  std::vector<std::optional<double>> links;  // of the topology
  std::string why_unknown;
};

struct PlayedBytes {
  Result<Forecast> played;
  TokenBytes bytes;
};

// Plays the run in virtual time on the machine of `rates`, and again with slower and faster disks: caches
// that load ahead give up neurons that come too late, so that bytes may depend on which of reading and
// computing is done first. Such bytes are unknown. So are those of small neurons on a disk that was not
// measured, since they are read with the gaps between them. Where activations decide, only a link that needs
// no bytes is known. `runtime` was made with `options` to be played on that machine, and has done nothing
// yet. Errors: those of plan_run and Runtime::create.
Result<PlayedBytes> foretell_bytes(Runtime& runtime, const RuntimeOptions& options,
                                   const PlannedTraffic& traffic, const MachineRates& rates);

// Returns the machine as the run's reads have it: a store that is too small to measure gaps on is read
// without any.
MachineDescription machine_to_play_on(const RunPlan& plan, const MachineRates& rates);

}  // namespace tierd
