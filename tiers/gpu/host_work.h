// Work that the host's processor does for a device: products for strategies (tierd_host::linear) with weights
// in the host's memory, and gathering bytes for a copy, unchanged or encoded anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/agent/agent_entry.h"
#include "tiers/compute/recoding.h"

namespace tierd {

// An interface, because the device may be in another shared object: threads that wait for each other must
// belong to one object, since each object has its own copy of the state of std::atomic::wait.
class HostWork : public Products {
 public:
  struct Copy {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    uint64_t bytes = 0;
  };
  // Returns when all copies are done. [the thread that drives the agent]
  virtual void copy(std::span<const Copy> copies) = 0;

  struct Encode {
    const NeuronRecoding* recoding = nullptr;
    size_t piece = 0;
    const std::byte* from = nullptr;  // of the piece
    std::byte* to = nullptr;
  };
  // Returns when all pieces are encoded. [the thread that drives the agent]
  virtual void encode(std::span<const Encode> pieces) = 0;
};

}  // namespace tierd
