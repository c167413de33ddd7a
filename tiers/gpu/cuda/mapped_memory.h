// Device addresses of which only a part is backed by memory: an arena costs nothing until it is in use, as on
// the host (tiers/dram/reserved_memory.h). The CUDA runtime has no such functions, so those of the driver are
// looked up by name; nothing is linked against the driver.
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
  // Reserves addresses without memory. Errors: unsupported, if the driver has no such functions; no_space.
  static Result<std::unique_ptr<MappedMemory>> reserve(uint64_t bytes, int device);
  ~MappedMemory();
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }
  // Returns the bytes that are backed by memory.
  uint64_t mapped() const { return pieces_.size() * piece_bytes_; }
  uint64_t piece_bytes() const { return piece_bytes_; }

  // Backs the range with memory. Error: no_space; pieces that were mapped before it stay mapped.
  Status map(const Range& range);
  // Backs exactly the ranges, which ascend, with memory: among the first `bytes`, pieces that no range
  // touches lose theirs. No access to these bytes may be under way. Error: no_space.
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
