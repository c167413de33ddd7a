// NVML: NVIDIA's GPUs count their energy, their memory's included. The library is part of the driver and is
// loaded if it is installed.
#pragma once

#include "core/watch/energy/energy_meter.h"

namespace tierd {

// The functions of libnvidia-ml.so.1 in use, with nvml.h's names and types; they return 0 for success.
struct NvmlLibrary {
  int (*init)() = nullptr;
  int (*device_count)(unsigned* count) = nullptr;
  int (*device_by_index)(unsigned index, void** device) = nullptr;
  int (*total_energy)(void* device, unsigned long long* millijoules) = nullptr;
};

// Error: not_found, naming what is missing.
Result<NvmlLibrary> load_nvml();

// Returns the meter of the machine's only GPU: with several, the one that the driver has assigned to a run is
// unknown. Errors: unsupported for several, and for one that counts no energy; not_found for none.
FoundMeter nvml_meter(const NvmlLibrary& library);

}  // namespace tierd
