// The encodings of a site's weights.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <vector>

#include "core/model/layout/encoding.h"

namespace tierd {

// One encoding for each of the operators that are stacked in a site, in their order: q, k and v; gate, up and
// down. All are equal in sites with columns, so that a column is one run of blocks.
class Encodings {
 public:
  Encodings() = default;
  Encodings(size_t n, Encoding all) : list_(n, all) {}
  Encodings(std::initializer_list<Encoding> list) : list_(list) {}

  size_t size() const { return list_.size(); }
  Encoding operator[](size_t part) const { return list_[part]; }
  Encoding& operator[](size_t part) { return list_[part]; }
  Encoding front() const { return list_.front(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  bool operator==(const Encodings&) const = default;

  // Whether they differ.
  bool mixed() const {
    return std::ranges::any_of(list_, [this](Encoding e) { return e != front(); });
  }
  bool has_blocks() const { return std::ranges::any_of(list_, is_quantized); }

 private:
  std::vector<Encoding> list_;
};

}  // namespace tierd
