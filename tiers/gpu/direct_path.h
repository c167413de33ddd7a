// What direct reads need of a device: that bytes which were read are copied to its memory, or that it reads
// by itself.
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

// All of it is for whoever drives the agent. Copies go beside what the device's engines do.
class DirectPath : public ApartMemory {
 public:
  // A device that reads a file into its own memory.
  struct OwnReads {
    std::string way;  // "cuFile"
    std::unique_ptr<BlockDevice> device;
    // The device's addresses of its memory, which reads name. Nobody of the host's looks there.
    std::span<std::byte> memory;
    std::unique_ptr<LandedCheck> check;
  };
  // Errors, after which reads are staged: unsupported, of a device that never reads by itself; others, of
  // what is missing or has failed, are worth a line to whoever runs this.
  virtual Result<OwnReads> open(const std::string& path) = 0;

  // Else copies come from this memory of the host, until release(). Returns what that is, "staged through
  // pinned memory", and why it is no better.
  struct Staging {
    std::string way;
    std::string why = {};
  };
  virtual Staging stage(std::span<std::byte> memory) = 0;

  // Turns readable when a copy that was begun is over, or -1.
  virtual int wait_fd() const = 0;
};

}  // namespace tierd
