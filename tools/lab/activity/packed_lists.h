// Lists of numbers in as few bytes as a trace uses. A run of a million neurons takes a dozen bytes in a file,
// so the lists of a whole trace must not be kept as numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace tierd {

class PackedLists {
 public:
  PackedLists() = default;
  PackedLists(std::initializer_list<std::vector<uint32_t>> lists) {
    for (const std::vector<uint32_t>& list : lists) push_back(list);
  }
  void push_back(std::span<const uint32_t> numbers);
  void pop_back();
  size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  std::vector<uint32_t> operator[](size_t i) const;

 private:
  std::vector<std::byte> bytes_;
  std::vector<uint64_t> ends_;  // end of each list in `bytes_`
};

}  // namespace tierd
