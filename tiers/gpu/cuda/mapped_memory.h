// Addresses of the device of which only a part has memory behind it: those of an arena cost nothing until
// they are in use, as on the host (tiers/dram/reserved_memory.h). The runtime has no words for it, so the
// driver's functions are asked for by name; nothing is linked against the driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "core/base/result.h"

namespace tierd::cuda {

struct DriverFunctions;

class MappedMemory {
 public:
  struct Range {  // bytes from the beginning
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  // Addresses alone. Errors: unsupported, where the driver has no such functions; no_space.
  static Result<std::unique_ptr<MappedMemory>> reserve(uint64_t bytes, int device);
  ~MappedMemory();
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }
  // Bytes that have memory behind them.
  uint64_t mapped() const { return pieces_.size() * piece_bytes_; }
  uint64_t piece_bytes() const { return piece_bytes_; }

  // Sees to it that there is memory behind the range. Error: no_space; what has been mapped then stays so.
  Status map(const Range& range);
  // Only pieces that a range lies in, even in part, keep their memory among the first `bytes`; ranges ascend.
  // Everything in the ranges has memory then. Nothing of these bytes is read or written meanwhile. Error:
  // no_space.
  Status use(uint64_t bytes, std::span<const Range> ranges);

 private:
  MappedMemory(const DriverFunctions& driver, int device) : driver_(driver), device_(device) {}
  void unmap(uint64_t piece);

  const DriverFunctions& driver_;
  const int device_;
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
  uint64_t piece_bytes_ = 0;
  std::map<uint64_t, uint64_t> pieces_;  // by number: the driver's handles
};

}  // namespace tierd::cuda
