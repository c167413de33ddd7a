// A memory that only its own agent reaches, so that no read lands there by itself (GLOSSARY.md: apart). The
// flash agent reads the extents for it into its bounce buffer, verifies them, and has them copied from there,
// beside the reads that follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/agent/message.h"

namespace tierd {

class ApartMemory {
 public:
  struct Copy {
    const std::byte* from = nullptr;  // in the bounce buffer
    uint64_t to = 0;                  // bytes from the beginning of the memory
    uint64_t bytes = 0;
  };
  struct Copied {
    uint64_t token = 0;
    DoneStatus status = DoneStatus::ok;  // else the contents of the destinations are undefined
    uint16_t error = 0;                  // the device's error code
  };

  virtual ~ApartMemory() = default;
  // Returns the bytes of the memory: no copy exceeds them.
  virtual uint64_t bytes() const = 0;
  // Begins the copies of one read, side by side with those that were begun before. Their sources stay
  // unchanged until poll() has returned the token. Never waits. [the thread that drives the agent, as for all
  // below]
  virtual void begin(uint64_t token, std::span<const Copy> copies) = 0;
  // Writes completions of copies to `copied`, as many as fit, and returns how many. Never waits.
  virtual size_t poll(std::span<Copied> copied) = 0;
  // Waits until all copies have ended; the bounce buffer is freed after it.
  virtual void release() = 0;
};

}  // namespace tierd
