// Kernel launches of this folder: by the CUDA runtime if nvcc compiles, and by the tests' runner
// (tests/gpu/cuda_on_host), which replaces <cuda_runtime.h>, if g++ does.
#pragma once

#include <cuda_runtime.h>

namespace tierd::cuda {

// Queues the kernel on the stream; an empty grid queues nothing. Never waits.
template <class... P, class... A>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream, A... args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return cudaSuccess;
#if defined(__CUDACC__)
  kernel<<<grid, block, 0, stream>>>(static_cast<P>(args)...);
  return cudaGetLastError();
#else
  return on_host::launch<P...>(kernel, grid, block, stream, static_cast<P>(args)...);
#endif
}

// Returns the number of blocks of `threads` threads that cover n.
constexpr unsigned blocks_for(uint64_t n, unsigned threads) {
  return static_cast<unsigned>((n + threads - 1) / threads);
}

}  // namespace tierd::cuda
