// A memory that no read lands in by itself, since its own agent alone reaches it (GLOSSARY.md: apart). The
// flash agent reads what goes there into its bounce buffer, verifies it, and has it copied from there, beside
// the reads that follow.
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
    DoneStatus status = DoneStatus::ok;  // else nothing is known of what was to be copied
    uint16_t error = 0;                  // a code of the device's
  };

  virtual ~ApartMemory() = default;
  // How many bytes can be copied to: no copy goes beyond them.
  virtual uint64_t bytes() const = 0;
  // Begins the copies of one read, side by side with those that were begun before. What they come from stays
  // as it is until poll() has told of the token. Never waits. [whoever drives the agent, as all that follows]
  virtual void begin(uint64_t token, std::span<const Copy> copies) = 0;
  // Tells of copies that are over: how many, at most as many as have room. Never waits.
  virtual size_t poll(std::span<Copied> copied) = 0;
  // Awaits what was begun; the bounce buffer goes then.
  virtual void release() = 0;
};

}  // namespace tierd
