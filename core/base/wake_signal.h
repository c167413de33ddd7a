// Wakes a thread that sleeps on a descriptor: an eventfd, or a pipe where a sandbox refuses that.
#pragma once

#include <cstdint>

#include "core/base/descriptor.h"

namespace tierd {

class WakeSignal {
 public:
  // Throws std::system_error when no descriptor can be had.
  WakeSignal();

  // Readable from a raise() on until the next take().
  int fd() const { return read_.get(); }
  // [any thread, async-signal-safe]
  void raise();
  // Returns how often it was raised since the last call. Does not wait.
  uint64_t take();

 private:
  Descriptor read_;   // of both ends where it is an eventfd
  Descriptor write_;  // of a pipe
};

}  // namespace tierd
