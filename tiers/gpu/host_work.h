// What the host's processor does for a device: products for strategies (tierd_host::linear), whose weights
// lie in its memory, and gathering what is copied from there, as it is or encoded anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/agent/agent_entry.h"
#include "tiers/compute/recoding.h"

namespace tierd {

// An interface, since the device may live in another shared object: threads that wait for each other must all
// be of one (each has a copy of what std::atomic::wait keeps).
class HostWork : public Products {
 public:
  struct Copy {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    uint64_t bytes = 0;
  };
  // Returns when all of them are done. [whoever drives the agent]
  virtual void copy(std::span<const Copy> copies) = 0;

  struct Encode {
    const NeuronRecoding* recoding = nullptr;
    size_t piece = 0;
    const std::byte* from = nullptr;  // of the piece
    std::byte* to = nullptr;
  };
  // The same.
  virtual void encode(std::span<const Encode> pieces) = 0;
};

}  // namespace tierd
