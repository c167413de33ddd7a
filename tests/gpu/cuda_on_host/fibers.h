// Runs a kernel's source on the CPU: each thread of a block is a fiber, which yields at a barrier or a warp's
// exchange. A seed shuffles the order of threads and blocks, so dependence on an order shows. The test ends
// if threads wait for different things or for a thread that has ended: a GPU would hang or compute something
// else.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}  // NOLINT
};

namespace on_host {

inline constexpr unsigned kWarpLanes = 32;

// Seeds the order of threads and blocks from now on.
void shuffle(uint64_t seed);

// The indices of the running thread.
struct Indices {
  dim3 thread, block, block_dim, grid_dim;
};
const Indices& indices();

// Runs all blocks of a grid, calling `body` once for each thread.
void run_grid(dim3 grid, dim3 block, const std::function<void()>& body);

void wait_for_block();
// Returns the bits of lane (own ^ lanes). Waits for the whole warp.
uint64_t exchange_bits(unsigned mask, uint64_t bits, unsigned lanes);
template <class T>
T exchange(unsigned mask, T value, unsigned lanes) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchange_bits(mask, bits, lanes);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace on_host

#define threadIdx (on_host::indices().thread)
#define blockIdx (on_host::indices().block)
#define blockDim (on_host::indices().block_dim)
#define gridDim (on_host::indices().grid_dim)
