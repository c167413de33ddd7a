// SparseGPT's input statistics: the Cholesky factor of the inverse of an operator's Hessian.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"

namespace tierd {

// For the layer-wise error ||WX - W'X||^2 the Hessian of each row of W is H = 2 X X^T, the same for all rows
// (SparseGPT: Massive Language Models Can Be Accurately Pruned in One-Shot, section 3).
struct InverseHessian {
  uint32_t width = 0;
  std::vector<float> factor;   // U [width x width], upper triangular: U^T U is the inverse of H, damped
  std::vector<uint32_t> dead;  // channels that are zero in every token: their weights have no effect
};

// The share of the mean of H's diagonal that is added to the diagonal, as in the published program.
inline constexpr double kDamping = 0.01;

// `gram`: X^T X [width x width] over the tokens of `windows` windows, on and below the diagonal; H is 2 /
// windows of it, with 1 on the diagonal for dead channels. Needs 8 * width^2 bytes more. Error:
// invalid_argument (not finite), with `origin`.
Result<InverseHessian> invert_hessian(std::vector<float> gram, uint32_t width, uint64_t windows,
                                      const std::string& origin);

}  // namespace tierd
