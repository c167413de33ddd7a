// Anonymous memory that is reserved at once and committed by use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "core/base/result.h"

namespace tierd {

class Memory {
 public:
  Memory() = default;
  // Zeroed, page-aligned. `huge` asks for 2 MiB pages wherever a whole one lies inside, so that no byte
  // outside is ever committed. Error: no_space.
  static Result<Memory> reserve(uint64_t bytes, bool huge);
  ~Memory();
  Memory(Memory&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }

  std::span<std::byte> bytes() const { return memory_; }
  std::byte* data() const { return memory_.data(); }

 private:
  explicit Memory(std::span<std::byte> memory) : memory_(memory) {}
  std::span<std::byte> memory_;
};

}  // namespace tierd
