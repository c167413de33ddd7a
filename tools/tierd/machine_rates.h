// The rates of this machine for --check: those that tier-calibrate keeps, else measured at once.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/run/run_plan.h"
#include "core/time/machine.h"

namespace tierd {

inline constexpr std::string_view kMeasuredJustNow = "measured just now";

struct MachineRates {
  MachineDescription machine;
  std::string from;                         // kMeasuredJustNow, or the file of the description
  std::optional<std::string> disk_unknown;  // why the disk of the store could not be measured
};

// Returns the description that the configuration names. Otherwise the description that tier-calibrate keeps,
// if it has the same number of threads and the disk of the store. Otherwise reads memory and disk for some
// tenths of a second, with 24 MiB. Writes no file. Errors: those of read_machine and measure_uncached_read.
Result<MachineRates> machine_rates(const RunPlan& plan, uint32_t threads);

}  // namespace tierd
