// The seam under an agent that reads a file: something that brings aligned blocks of it, many at a time,
// without the page cache. It is here, and not beside its implementations (tiers/flash/device.h), because
// tests put one of their own below an agent that lies in a shared object. Single-threaded like the agent
// above it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tierd {

// A part of a file; both multiples of 4096.
struct FileRange {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct DeviceRead {
  uint64_t token = 0;         // comes back with the completion
  uint64_t offset = 0;        // multiple of 4096
  std::span<std::byte> into;  // address and size multiples of 4096
  // How many of its bytes whoever asks will check, and copy to where they belong, when it has landed: a disk
  // in virtual time counts that in, others need not know.
  uint64_t checked = 0;
  uint64_t copied = 0;
};
struct DeviceDone {
  uint64_t token = 0;
  int32_t result =
      0;  // bytes read (may be short), or -errno, as the operating system gave it: no retries down here
};

class BlockDevice {
 public:
  virtual ~BlockDevice() = default;
  virtual std::string_view name() const = 0;  // "io_uring", "pread", …, for reports
  virtual uint32_t depth() const = 0;         // the most reads in flight
  // Queues one read; false when `depth` are in flight. Nothing is started before `flush`.
  virtual bool push(const DeviceRead& read) = 0;
  virtual void flush() = 0;
  // Finished reads, without waiting.
  virtual size_t poll(std::span<DeviceDone> done) = 0;
  // Readable while finished reads wait for `poll`.
  virtual int wait_fd() const = 0;
  // Tells the device where most reads will land, so that it may pin those pages. Refusal (a small
  // RLIMIT_MEMLOCK) is not an error: reads work as before; `registered` says which.
  virtual void register_memory(std::span<std::byte> memory) = 0;
  virtual bool registered() const = 0;
};

enum class DeviceKind : uint8_t { automatic, io_uring, pread };
struct DeviceOptions {
  DeviceKind kind =
      DeviceKind::automatic;  // io_uring, or pread where the kernel refuses it (said in one log line)
  uint32_t depth = 32;
  bool direct =
      true;  // O_DIRECT; a file system without it (tmpfs) is read through the page cache, said in a log line
};

// Opens `path` for reading. Errors: not_found, io_error, naming the file.
using OpenDevice = std::function<Result<std::unique_ptr<BlockDevice>>(const std::string& path,
                                                                      const DeviceOptions& options)>;

}  // namespace tierd
