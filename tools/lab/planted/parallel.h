// Runs equal pieces of work on all cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace tierd {

// Calls work(0) … work(count - 1), each once, in any order on any thread; returns when all are done.
template <class Work>
void in_parallel(uint32_t count, const Work& work) {
  std::atomic<uint32_t> taken = 0;
  std::vector<std::jthread> workers;
  const uint32_t threads = std::min(count, std::max(1u, std::thread::hardware_concurrency()));
  for (uint32_t i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      for (uint32_t piece = taken++; piece < count; piece = taken++) work(piece);
    });
  }
}

}  // namespace tierd
