// The interface between agent-gpu.so and tierd-gpu-cuda.so, the object beside it with the backend `cuda`. The
// object contains the CUDA runtime, which needs no driver before a device is requested. Both are built from
// the same tree.
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

// The one symbol that the object exports. The agent checks the build id before it reads any member behind it.
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
