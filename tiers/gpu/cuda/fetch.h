// A kernel reads registered memory of the host where it lies.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace tierd::cuda {

// It brings bytes of one registered piece to a place of the device.
struct Fetch {
  const std::byte* from = nullptr;  // as cudaHostGetDevicePointer has it
  uint64_t to = 0;                  // bytes from the memory's first
  uint64_t bytes = 0;
};
// Queues one launch. `fetches` is pinned; both places are multiples of 16, and the last 16 bytes of what is
// read are in the piece, although only `bytes` are written. `most` is the largest of the bytes.
cudaError_t fetch(const Fetch* fetches, uint32_t n, uint64_t most, std::byte* memory, cudaStream_t stream);

}  // namespace tierd::cuda
