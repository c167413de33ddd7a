// Wakes a thread that sleeps on a descriptor: an eventfd, or a pipe if a sandbox refuses eventfd.
#pragma once

#include <cstdint>

#include "core/base/descriptor.h"

namespace tierd {

class WakeSignal {
 public:
  // Throws std::system_error if no descriptor is available.
  WakeSignal();

  // Readable from a raise() until the next take().
  int fd() const { return read_.get(); }
  // [any thread, async-signal-safe]
  void raise();
  // Returns the number of raises since the last call. Does not wait.
  uint64_t take();

 private:
  Descriptor read_;   // both ends of an eventfd, or the read end of a pipe
  Descriptor write_;  // write end of a pipe
};

}  // namespace tierd
