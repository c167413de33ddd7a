#include "tiers/gpu/cuda/fetch.h"

#include "tiers/gpu/cuda/device_values.cuh"
#include "tiers/gpu/cuda/launch.h"

namespace tierd::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kAhead = 4;        // reads of 16 bytes that a thread has under way
constexpr uint32_t kTile = 64 << 10;  // bytes of a fetch that a block copies before it takes the next tile
// 32 blocks have 512 KiB under way, several times what a link of 64 GB/s carries during one read. More blocks
// would only wait for the link and occupy multiprocessors of the computing lane.
constexpr uint32_t kMostBlocks = 32;

// Requires that the host does not write there while the kernel runs.
__device__ uint4 load_mapped16(const std::byte* at) {
#if defined(__CUDACC__)
  return load_weights16(at);
#else
  return load_weights16(on_host::mapped(at, 16));
#endif
}

// Stores the first n of 16 bytes.
__device__ void store_some(std::byte* to, const uint4& words, uint32_t n) {
#pragma unroll
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t word = i < 4 ? words.x : i < 8 ? words.y : i < 12 ? words.z : words.w;
    if (i < n) to[i] = static_cast<std::byte>(word >> i % 4 * 8);
  }
}

// Copies a tile with all threads of a block.
__device__ void copy_tile(const std::byte* from, std::byte* to, uint32_t bytes) {
  constexpr uint32_t kStep = kThreads * 16;
  const uint32_t whole = bytes / 16 * 16;
  for (uint32_t first = threadIdx.x * 16; first < whole; first += kAhead * kStep) {
    uint4 words[kAhead] = {};
#pragma unroll
    for (uint32_t i = 0; i < kAhead; ++i) {
      const uint32_t at = first + i * kStep;
      if (at < whole) words[i] = load_mapped16(from + at);
    }
#pragma unroll
    for (uint32_t i = 0; i < kAhead; ++i) {
      const uint32_t at = first + i * kStep;
      if (at < whole) *reinterpret_cast<uint4*>(to + at) = words[i];
    }
  }
  if (whole != bytes && threadIdx.x == 0) store_some(to + whole, load_mapped16(from + whole), bytes - whole);
}

__global__ void __launch_bounds__(kThreads)
    fetch_kernel(const Fetch* fetches, uint64_t n_tiles, uint32_t tiles_of_one, std::byte* memory) {
  for (uint64_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
    const Fetch one = fetches[tile / tiles_of_one];
    const uint64_t begin = tile % tiles_of_one * kTile;
    if (begin >= one.bytes) continue;
    const uint64_t left = one.bytes - begin;
    copy_tile(one.from + begin, memory + one.to + begin, static_cast<uint32_t>(left < kTile ? left : kTile));
  }
}

}  // namespace

cudaError_t fetch(const Fetch* fetches, uint32_t n, uint64_t most, std::byte* memory, cudaStream_t stream) {
  const auto tiles_of_one = static_cast<uint32_t>((most + kTile - 1) / kTile);
  const uint64_t n_tiles = uint64_t{n} * tiles_of_one;
  const dim3 grid(static_cast<unsigned>(n_tiles < kMostBlocks ? n_tiles : kMostBlocks));
  return launch(fetch_kernel, grid, dim3(kThreads), stream, fetches, n_tiles, tiles_of_one, memory);
}

}  // namespace tierd::cuda
