// The power of devices, and the emission of making them: [energy] of a description in configs/hardware.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.h"

namespace tierd {

// A device, or a GB (1e9 bytes) of a memory.
struct DevicePower {
  double watts = 0;        // while in use
  double embodied_kg = 0;  // of CO2, emitted by making it; 0: unknown
  double life_years = 0;   // over which the emission is spread; 0: unknown
};

struct PowerDescription {
  std::string path;
  double grams_per_kwh = 0;  // of CO2: intensity of the grid
  DevicePower processor;     // with all its cores
  uint32_t processor_cores = 1;
  std::optional<DevicePower> gpu;  // per GPU, with its memory; none: the machine has no GPU
  DevicePower dram;                // per GB
  DevicePower flash;
};

// Reads only [energy], also from a base: other tables of the file are ignored. `name`: of a file in
// configs/hardware, or a file's path. Errors name file and key: not_found, also for a file without the table;
// io_error, invalid_argument.
Result<PowerDescription> read_power(const std::string& name);

// Returns the description for a configuration: that of `energy` (run.energy) if it is set, else that of
// `machine` (run.machine) if it has the table, else kDefaultPower. Errors: those of read_power.
inline constexpr const char* kDefaultPower = "rtx3090-box";
Result<PowerDescription> choose_power(const std::string& energy, const std::string& machine);

}  // namespace tierd
