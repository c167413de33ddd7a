// NVML: NVIDIA's GPUs count what they draw, their memory included. The library comes with the driver and is
// loaded where it is there.
#pragma once

#include "core/watch/energy/energy_meter.h"

namespace tierd {

// The functions of libnvidia-ml.so.1 that are used, with the names and types that nvml.h gives them; they
// return 0 for success.
struct NvmlLibrary {
  int (*init)() = nullptr;
  int (*device_count)(unsigned* count) = nullptr;
  int (*device_by_index)(unsigned index, void** device) = nullptr;
  int (*total_energy)(void* device, unsigned long long* millijoules) = nullptr;
};

// Error: not_found, saying what is missing.
Result<NvmlLibrary> load_nvml();

// The one GPU of the machine: where there are several, nobody here knows which of them the driver has given
// to a run. Errors: unsupported for several, and for one that counts nothing; not_found for none.
FoundMeter nvml_meter(const NvmlLibrary& library);

}  // namespace tierd
