// Disks on which the writing of a store ends early.
#pragma once

#include <csignal>
#include <string>

#include "core/store/manifest.h"
#include "core/store/store_writer.h"

namespace tierd {

// Small limits, so that a small model is written in many steps.
inline constexpr WriterLimits kSmallSteps = {.batch_bytes = 16 << 10, .checkpoint_bytes = 48 << 10};

// Fails at change number `interrupt_at`; a write fails after half of its bytes.
class InterruptedDisk : public Disk {
 public:
  Result<OpenFile> open(const std::string& path, bool truncate) override {
    if (interrupted()) return failure(path);
    return Disk::open(path, truncate);
  }
  Status write(const OpenFile& file, uint64_t offset, std::span<const std::byte> bytes) override {
    if (interrupted()) {
      TIERD_TRY(Disk::write(file, offset, bytes.first(bytes.size() / 2)));
      return failure(file.path());
    }
    if (file.path().ends_with(kDataFile)) data_written += bytes.size();
    return Disk::write(file, offset, bytes);
  }
  Status truncate(const OpenFile& file, uint64_t bytes) override {
    return interrupted() ? Status(failure(file.path())) : Disk::truncate(file, bytes);
  }
  Status sync(const OpenFile& file) override {
    if (interrupted()) return failure(file.path());
    return {};  // a killed process leaves the page cache intact
  }
  Status make_directory(const std::string& path) override {
    return interrupted() ? Status(failure(path)) : Disk::make_directory(path);
  }
  Status rename(const std::string& from, const std::string& to) override {
    return interrupted() ? Status(failure(to)) : Disk::rename(from, to);
  }
  Status remove(const std::string& path) override {
    return interrupted() ? Status(failure(path)) : Disk::remove(path);
  }

  int steps = 0;
  int interrupt_at = -1;
  uint64_t data_written = 0;

 protected:
  bool interrupted() { return steps++ == interrupt_at; }
  virtual Error failure(const std::string& path) { return {Code::no_space, path, "no space left"}; }
};

// Kills the process at that change.
class KillingDisk : public InterruptedDisk {
 protected:
  Error failure(const std::string& path) override {
    raise(SIGKILL);
    return {Code::internal, path, "survived"};
  }
};

}  // namespace tierd
