// A number that one thread counts and any other may look at.
#pragma once

#include <atomic>
#include <cstdint>

namespace tierd {

class Counter {
 public:
  // [the counting thread] A plain addition: nobody else writes.
  void add(uint64_t n) { set(get() + n); }
  void set(uint64_t n) { value_.store(n, std::memory_order_relaxed); }
  // [any thread] Says nothing about other memory, nor about other counters.
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace tierd
