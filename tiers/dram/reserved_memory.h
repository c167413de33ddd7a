// Anonymous memory that is reserved at once and committed as it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/agent/pool.h"
#include "core/base/result.h"

namespace tierd {

class ReservedMemory {
 public:
  using Range = PageRange;

  ReservedMemory() = default;
  // Zeroed and page-aligned; from 2 MiB on aligned to 2 MiB. Error: no_space.
  static Result<ReservedMemory> reserve(uint64_t bytes);
  ~ReservedMemory();
  ReservedMemory(ReservedMemory&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
  ReservedMemory& operator=(ReservedMemory&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }

  std::span<std::byte> bytes() const { return memory_; }
  std::byte* data() const { return memory_.data(); }

  // Declares which ascending ranges of the first `bytes`, a multiple of 4096 or all, are in use. Huge pages
  // (2 MiB) are requested only if they are wholly inside a range, so that no byte outside is ever committed,
  // except the rest of 4 KiB pages at a range's ends. Pages in no range are given back to the system; they
  // are zero when they are used again. No thread may access these bytes meanwhile, and no device may know
  // their pages.
  void use(uint64_t bytes, std::span<const Range> ranges);
  // The pages of ranges in use: whole pages, ascending, without duplicates. `use` keeps the pages of `inner`
  // behind their addresses and may replace all others. In `all`, each range's ends of less than a huge page
  // are ranges of their own.
  struct Pages {
    std::vector<Range> inner;
    std::vector<Range> all;
  };
  static Pages pages_of(std::span<const Range> ranges);
  // Commits the pages of a range in use, which would otherwise be committed as they are first written: 2 MiB
  // of zeroing inside a read's submission. Before Linux 5.14 they still are. Several threads may share the
  // work.
  void commit(const Range& range);

 private:
  explicit ReservedMemory(std::span<std::byte> memory) : memory_(memory) {}
  void give_back(uint64_t begin, uint64_t end);
  void use_small_pages(uint64_t begin, uint64_t end);
  bool resident(uint64_t begin, uint64_t end) const;

  std::span<std::byte> memory_;
};

}  // namespace tierd
