// The time that the kernel and its agents live in: that of the wall, or a virtual one
// (core/kernel/post/clocks.h).
#pragma once

#include <cstdint>

namespace tierd {

class Waiter;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual uint64_t now_ns() const = 0;
  // For when nothing can be done at the present time: waits for another. False if nothing will ever happen.
  // [kernel]
  virtual bool wait(Waiter& waiter) = 0;
};

}  // namespace tierd
