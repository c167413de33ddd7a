// The interface below an agent that reads a file: reads aligned blocks of the file, many at a time, without
// the page cache. It is declared here, not beside its implementations (tiers/flash/device.h), because tests
// put their own implementation below an agent in a shared object. Single-threaded, like the agent.
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

// A part of a file. Both are multiples of 4096.
struct FileRange {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct DeviceRead {
  uint64_t token = 0;         // returned with the completion
  uint64_t offset = 0;        // multiple of 4096
  std::span<std::byte> into;  // address and size multiples of 4096
  // The bytes that the caller will verify, and copy elsewhere, after the read: a disk in virtual time adds
  // the time for both; other devices ignore them.
  uint64_t checked = 0;
  uint64_t copied = 0;
};
struct DeviceDone {
  uint64_t token = 0;
  int32_t result =
      0;  // bytes read (may be short), or -errno of the operating system; the device does not retry
};

class BlockDevice {
 public:
  virtual ~BlockDevice() = default;
  virtual std::string_view name() const = 0;  // "io_uring", "pread", …, for reports
  virtual uint32_t depth() const = 0;         // the most reads in flight
  // Queues one read; false when `depth` are in flight. No read starts before `flush`.
  virtual bool push(const DeviceRead& read) = 0;
  virtual void flush() = 0;
  // Returns finished reads without waiting.
  virtual size_t poll(std::span<DeviceDone> done) = 0;
  // Readable while finished reads wait for `poll`.
  virtual int wait_fd() const = 0;
  // Passes the memory into which most reads go, so that the device may pin its pages. Refusal (a small
  // RLIMIT_MEMLOCK) is not an error: reads work as before, and `registered` is false.
  virtual void register_memory(std::span<std::byte> memory) = 0;
  virtual bool registered() const = 0;
};

enum class DeviceKind : uint8_t { automatic, io_uring, pread };
struct DeviceOptions {
  DeviceKind kind =
      DeviceKind::automatic;  // io_uring, or pread if the kernel refuses it (logged in one line)
  uint32_t depth = 32;
  bool direct =
      true;  // O_DIRECT; a file system without it (tmpfs) is read through the page cache (logged in one line)
};

// Opens `path` for reading. Errors: not_found, io_error, naming the file.
using OpenDevice = std::function<Result<std::unique_ptr<BlockDevice>>(const std::string& path,
                                                                      const DeviceOptions& options)>;

}  // namespace tierd
