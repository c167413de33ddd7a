#include "tools/lab/prune/inverse_hessian.h"

#include <Eigen/Cholesky>

namespace tierd {
namespace {

using Matrix = Eigen::Ref<Eigen::MatrixXd>;
constexpr Eigen::Index kSmall = 64;  // the size from which on dividing no longer pays

// Inverts a lower triangular matrix in place, by halves: [A 0; B C] -> [A^-1 0; -C^-1 B A^-1, C^-1]. Values
// above the diagonal are not changed.
void invert_lower(Matrix matrix) {
  const Eigen::Index n = matrix.rows();
  if (n <= kSmall) {
    Eigen::MatrixXd inverse = Eigen::MatrixXd::Identity(n, n);
    matrix.triangularView<Eigen::Lower>().solveInPlace(inverse);
    matrix.triangularView<Eigen::Lower>() = inverse;
    return;
  }
  const Eigen::Index half = n / 2;
  Matrix a = matrix.topLeftCorner(half, half), c = matrix.bottomRightCorner(n - half, n - half);
  Matrix b = matrix.bottomLeftCorner(n - half, half);
  c.triangularView<Eigen::Lower>().solveInPlace(b);
  a.triangularView<Eigen::Lower>().solveInPlace<Eigen::OnTheRight>(b);
  b = -b;
  invert_lower(a);
  invert_lower(c);
}

}  // namespace

// With rows and columns in reverse order, H = L L^T gives H = U' U'^T with U' upper triangular in the
// original order; so the inverse is U^T U with U = U'^-1: one factorization instead of the two of the
// published program, with an inverse between them. In f64, since damping leaves H close to singular if
// channels depend on each other.
Result<InverseHessian> invert_hessian(std::vector<float> gram, uint32_t width, uint64_t windows,
                                      const std::string& origin) {
  InverseHessian result{width, std::move(gram), {}};
  std::vector<float>& values = result.factor;
  const uint64_t n = width;
  const double scale = 2.0 / static_cast<double>(windows);
  double trace = 0;
  std::vector<double> diagonal(n);
  for (uint64_t i = 0; i < n; ++i) {
    diagonal[i] = scale * values[i * n + i];
    if (diagonal[i] == 0) {
      result.dead.push_back(static_cast<uint32_t>(i));
      diagonal[i] = 1;
    }
    trace += diagonal[i];
  }
  const double damping = kDamping * trace / static_cast<double>(n);

  const auto size = static_cast<Eigen::Index>(n);
  Eigen::MatrixXd matrix(size, size);
  for (Eigen::Index j = 0; j < size; ++j) {
    const uint64_t column = n - 1 - static_cast<uint64_t>(j);
    matrix(j, j) = diagonal[column] + damping;
    for (Eigen::Index i = j + 1; i < size; ++i)
      matrix(i, j) = scale * values[column * n + (n - 1 - static_cast<uint64_t>(i))];
  }
  const Eigen::LLT<Matrix> factored(matrix);
  // A NaN propagates through the factorization to the diagonal.
  if (factored.info() != Eigen::Success || !matrix.diagonal().allFinite()) {
    return Error{
        Code::invalid_argument, origin,
        "its inputs on the calibration text have squares that are not finite; the model may be damaged"};
  }
  invert_lower(matrix);
  for (uint64_t i = 0; i < n; ++i) {
    for (uint64_t j = 0; j < n; ++j) {
      values[i * n + j] = j < i ? 0.0f
                                : static_cast<float>(matrix(size - 1 - static_cast<Eigen::Index>(i),
                                                            size - 1 - static_cast<Eigen::Index>(j)));
    }
  }
  return result;
}

}  // namespace tierd
