// What the devices of a machine draw, and what making them has emitted: the table [energy] of a description
// in configs/hardware.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.h"

namespace tierd {

// A device, or a GB (1e9 bytes) of a memory.
struct DevicePower {
  double watts = 0;        // while it is in use
  double embodied_kg = 0;  // of CO2, that making it has emitted; 0: not known
  double life_years = 0;   // over which that is spread; 0 where it is not known
};

struct PowerDescription {
  std::string path;
  double grams_per_kwh = 0;  // of CO2: the grid's intensity
  DevicePower processor;     // with all its cores
  uint32_t processor_cores = 1;
  std::optional<DevicePower> gpu;  // each, with its memory; none: the machine has no GPU
  DevicePower dram;                // each GB
  DevicePower flash;
};

// Reads [energy] alone, also of a base: whatever else the file describes is not looked at. `name`: of a file
// in configs/hardware, or a file's path. Errors name file and key: not_found, also of a file without the
// table; io_error, invalid_argument.
Result<PowerDescription> read_power(const std::string& name);

// The description that goes for a configuration: `energy` (run.energy) where it is named, else that of
// `machine` (run.machine) where it has the table, else kDefaultPower. Errors: those of read_power.
inline constexpr const char* kDefaultPower = "rtx3090-box";
Result<PowerDescription> choose_power(const std::string& energy, const std::string& machine);

}  // namespace tierd
