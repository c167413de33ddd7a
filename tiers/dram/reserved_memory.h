// Anonymous memory that is reserved at once and committed by use.
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
  // Zeroed, page-aligned; from 2 MiB on aligned to that. Error: no_space.
  static Result<ReservedMemory> reserve(uint64_t bytes);
  ~ReservedMemory();
  ReservedMemory(ReservedMemory&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
  ReservedMemory& operator=(ReservedMemory&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }

  std::span<std::byte> bytes() const { return memory_; }
  std::byte* data() const { return memory_.data(); }

  // What is in use of its first `bytes`, a multiple of 4096 or all: ascending ranges. 2 MiB pages are asked
  // for wherever a whole one lies inside a range, and nowhere else, so that no byte outside is ever
  // committed, but for what a range's ends leave of pages of 4 KiB. Pages that lie in no range are given back
  // to the system; they are zero when they are used again. Nobody reads or writes anything of these bytes
  // meanwhile, and no device knows their pages.
  void use(uint64_t bytes, std::span<const Range> ranges);
  // These are the pages of ranges that are in use: whole pages, ascending, none of them twice. `use` leaves
  // those of `inner` behind their addresses as they are, and may put others in the place of the rest. Each
  // range's ends of less than a huge page are ranges of their own in `all`.
  struct Pages {
    std::vector<Range> inner;
    std::vector<Range> all;
  };
  static Pages pages_of(std::span<const Range> ranges);
  // Commits the pages of what is in use, which would come one by one as they are written: 2 MiB of zeros in
  // the middle of a read's submission. Before Linux 5.14 they still do. Threads may share the work.
  void commit(const Range& range);

 private:
  explicit ReservedMemory(std::span<std::byte> memory) : memory_(memory) {}
  void give_back(uint64_t begin, uint64_t end);
  void use_small_pages(uint64_t begin, uint64_t end);
  bool resident(uint64_t begin, uint64_t end) const;

  std::span<std::byte> memory_;
};

}  // namespace tierd
