// A kernel that reads registered memory of the host in place, over the link.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace tierd::cuda {

// Bytes of one registered piece, and their destination on the device.
struct Fetch {
  const std::byte* from = nullptr;  // the device's address of them (cudaHostGetDevicePointer)
  uint64_t to = 0;                  // bytes from the beginning of the memory
  uint64_t bytes = 0;
};
// Queues one launch. `fetches` must be pinned; both addresses are multiples of 16. The kernel reads whole 16
// bytes, which the piece must contain, and writes only `bytes`. `most` is the largest `bytes`.
cudaError_t fetch(const Fetch* fetches, uint32_t n, uint64_t most, std::byte* memory, cudaStream_t stream);

}  // namespace tierd::cuda
