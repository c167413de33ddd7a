// A matrix in panels of 32 columns, the order in which PlantedKernels::multiply reads it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/align.h"

namespace tierd {

inline constexpr uint32_t kPanelCols = 32;

class PackedMatrix {
 public:
  PackedMatrix(uint32_t depth, uint32_t cols)
      : depth_(depth), cols_(cols), values_(align_up(cols, kPanelCols) * depth) {}

  // Sets row `row` of `depth()`, `cols()` values.
  void set_row(uint32_t row, std::span<const float> values) {
    for (uint32_t col = 0; col < cols_; col += kPanelCols) {
      const uint32_t count = std::min(kPanelCols, cols_ - col);
      std::copy_n(values.data() + col, count, values_.data() + uint64_t{col} * depth_ + row * kPanelCols);
    }
  }

  uint32_t depth() const { return depth_; }
  uint32_t cols() const { return cols_; }
  // [depth x 32], with zeros past the last column; `col` is a multiple of 32.
  const float* panel(uint32_t col) const { return values_.data() + uint64_t{col} * depth_; }

 private:
  uint32_t depth_;
  uint32_t cols_;
  std::vector<float> values_;
};

}  // namespace tierd
