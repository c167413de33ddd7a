// Where agent-gpu.so and the object with the backend `cuda` meet (tierd-gpu-cuda.so, beside it): the object
// has the CUDA runtime, which needs no driver before it is asked for a device. Both are built from the same
// tree.
#pragma once

#include <memory>

#include "core/agent/clock.h"
#include "core/agent/pool.h"
#include "core/agent/program.h"
#include "core/base/result.h"
#include "tiers/gpu/cuda/device_options.h"
#include "tiers/gpu/device.h"
#include "tiers/gpu/host_work.h"

namespace tierd::cuda {

// The one symbol that the object exports. Nothing behind the build id is looked at before it has been found
// right.
struct Backend {
  const char* build_id;  // TIERD_BUILD_ID
  // See CudaDevice::create.
  Result<std::unique_ptr<Device>> (*create)(const DeviceOptions& options, PoolTable& pools,
                                            const Clock& clock, const ComputePlan& plan,
                                            std::unique_ptr<HostWork> host);
};
inline constexpr const char* kBackendSymbol = "tierd_gpu_cuda";
inline constexpr const char* kBackendFile = "tierd-gpu-cuda.so";

}  // namespace tierd::cuda
