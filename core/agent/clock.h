// The clock of the kernel and its agents: the wall clock, or a virtual one (core/kernel/post/clocks.h).
#pragma once

#include <cstdint>

namespace tierd {

class Waiter;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual uint64_t now_ns() const = 0;
  // Waits for a later time, when nothing can be done at the present one. Returns false if nothing will ever
  // happen. [kernel]
  virtual bool wait(Waiter& waiter) = 0;
};

}  // namespace tierd
