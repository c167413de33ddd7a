// tierd-gpu-cuda.so
#include "core/agent/build_id.h"
#include "tiers/gpu/cuda/cuda_backend.h"
#include "tiers/gpu/cuda/cuda_device.h"

namespace tierd::cuda {
namespace {

Result<std::unique_ptr<Device>> create(const DeviceOptions& options, PoolTable& pools, const Clock& clock,
                                       const ComputePlan& plan, std::unique_ptr<HostWork> host) {
  TIERD_ASSIGN(std::unique_ptr<CudaDevice> device,
               CudaDevice::create(options, pools, clock, plan, std::move(host)));
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace
}  // namespace tierd::cuda

extern "C" __attribute__((visibility("default"))) const tierd::cuda::Backend tierd_gpu_cuda;
extern "C" const tierd::cuda::Backend tierd_gpu_cuda = {TIERD_BUILD_ID, tierd::cuda::create};
