// A counter written by one thread and read by any.
#pragma once

#include <atomic>
#include <cstdint>

namespace tierd {

class Counter {
 public:
  // [the counting thread] A plain addition, because no other thread writes.
  void add(uint64_t n) { set(get() + n); }
  void set(uint64_t n) { value_.store(n, std::memory_order_relaxed); }
  // [any thread] Orders no other memory access, nor other counters.
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace tierd
