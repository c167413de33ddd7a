// Wakes a parked thread when the device has finished something: a descriptor (eventfd) turns readable.
#pragma once

#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdint>

#include "tiers/gpu/cuda/outcome.h"

namespace tierd::cuda {

inline void ring(int descriptor) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, &one, sizeof one);
}

// Rings the descriptor when the event has completed. `by` is a stream of its own, so that no kernel or copy
// waits for the driver's thread. After an error it rings at once: the thread that wakes polls the device and
// finds the error.
inline void announce(cudaStream_t by, cudaEvent_t event, int descriptor) {
  const auto rings = [](void* argument) { ring(static_cast<int>(reinterpret_cast<intptr_t>(argument))); };
  Outcome outcome;
  outcome.then([&] { return cudaStreamWaitEvent(by, event, 0); });
  outcome.then([&] { return cudaLaunchHostFunc(by, rings, reinterpret_cast<void*>(intptr_t{descriptor})); });
  if (outcome.ok()) return;
  (void)cudaGetLastError();  // else the next launch would report it
  ring(descriptor);
}

}  // namespace tierd::cuda
