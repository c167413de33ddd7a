// Statistics of one input of a layer over the calibration text.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/lab/prune/matrix_team.h"

namespace tierd {

// Sums over the rows that operators read, X [tokens x width].
class InputStatistics {
 public:
  // `with_gram`: also sums X^T X, of 4 * width^2 bytes, for SparseGPT.
  InputStatistics(uint32_t width, bool with_gram);

  // Adds the rows of one window.
  void add(const TokenRows& x, MatrixTeam& team);

  uint32_t width() const { return static_cast<uint32_t>(squares_.size()); }
  uint64_t windows() const { return windows_; }
  // ||X_j||_2 of each channel j (Wanda, section 3).
  std::vector<float> norms() const;
  const std::vector<float>& largest() const { return largest_; }  // max |X_j|
  // Moves X^T X [width x width] out, on and below the diagonal.
  std::vector<float> take_gram() { return std::move(gram_); }

 private:
  uint64_t windows_ = 0;
  std::vector<double> squares_;  // [width]
  std::vector<float> largest_;   // [width]
  std::vector<float> gram_;      // [width x width], or empty
};

}  // namespace tierd
