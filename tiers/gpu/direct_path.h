// The interface that direct reads need of a device: it copies bytes to its memory, or reads a file by itself.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/base/block_device.h"
#include "core/base/result.h"
#include "tiers/flash/apart_memory.h"
#include "tiers/flash/landed_check.h"

namespace tierd {

// Called only by the thread that drives the agent. Copies run beside the device's engines.
class DirectPath : public ApartMemory {
 public:
  // A device that reads a file into its own memory.
  struct OwnReads {
    std::string way;  // "cuFile"
    std::unique_ptr<BlockDevice> device;
    // The device's addresses of its memory, as reads name them. The host must not dereference them.
    std::span<std::byte> memory;
    std::unique_ptr<LandedCheck> check;
  };
  // Opens the file for reads by the device. After an error reads are staged. Errors: unsupported, if the
  // device never reads by itself; all others (a missing part, a failure) are worth a log line for the user.
  virtual Result<OwnReads> open(const std::string& path) = 0;

  // Declares that copies come from this memory of the host until release(). Returns the name of the path,
  // such as "staged through pinned memory", and why no better one is used.
  struct Staging {
    std::string way;
    std::string why = {};
  };
  virtual Staging stage(std::span<std::byte> memory) = 0;

  // A descriptor that turns readable when a copy that was begun has ended, or -1.
  virtual int wait_fd() const = 0;
};

}  // namespace tierd
