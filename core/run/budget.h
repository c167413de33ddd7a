// The memory of a tier by purpose; the sum never exceeds the capacity.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace tierd {

class Budget {
 public:
  struct Line {
    std::string name;
    uint64_t bytes = 0;
  };

  explicit Budget(uint64_t capacity) : capacity_(capacity) {}

  // Error: no_space, naming the line, the requested bytes and the bytes left.
  Status reserve(const std::string& line, uint64_t bytes);
  void release(const std::string& line, uint64_t bytes);
  // Sets the capacity; at least the bytes in use.
  void set_capacity(uint64_t capacity);

  uint64_t capacity() const { return capacity_; }
  uint64_t used() const { return used_; }
  uint64_t peak() const { return peak_; }
  uint64_t left() const { return capacity_ - used_; }
  const std::vector<Line>& lines() const { return lines_; }

 private:
  Line& line(const std::string& name);
  uint64_t capacity_;
  uint64_t used_ = 0;
  uint64_t peak_ = 0;
  std::vector<Line> lines_;
};

}  // namespace tierd
