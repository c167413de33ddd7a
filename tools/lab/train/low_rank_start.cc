#include "tools/lab/train/low_rank_start.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include "core/base/random.h"
#include "tools/lab/train/pieces.h"

namespace tierd {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using RowsView = Eigen::Map<const Rows>;

constexpr uint64_t kColumns = 64;  // of a piece
constexpr uint64_t kRows = 256;
// The least variance of a direction, as a share of the largest variance or squared mean of any input. A
// direction of less counts as constant.
constexpr double kLeastVariance = 1e-6;
// The standard deviation of the first scores. With larger ones the start is surer of itself, and Adam takes
// longer to correct it.
constexpr double kStartDeviation = 2;
// Vectors beside those of the rank, and rounds: by then the subspace has all but 1e-4 of the energy of the
// best one.
constexpr Index kSpareVectors = 32;
constexpr int kRounds = 12;

// Returns the lower triangle of x^T x, plus its transpose above the diagonal.
MatrixXd gram_of(Team& team, const RowsView& x) {
  const Index n = x.cols();
  MatrixXd gram(n, n);
  in_pieces(team, n, kColumns, 0.5 * x.rows() * n * n, [&](Index at, Index count) {
    gram.block(at, at, n - at, count) =
        (x.rightCols(n - at).transpose() * x.middleCols(at, count)).cast<double>();
  });
  gram.triangularView<Eigen::StrictlyUpper>() = gram.transpose();
  return gram;
}

MatrixXd product_of(Team& team, const MatrixXd& a, const MatrixXd& b) {
  MatrixXd product(a.rows(), b.cols());
  in_pieces(team, b.cols(), kColumns, 1.0 * a.rows() * a.cols() * b.cols(), [&](Index at, Index count) {
    product.middleCols(at, count).noalias() = a * b.middleCols(at, count);
  });
  return product;
}

// Returns orthonormal columns that span about the `rank` leading eigenvectors of a matrix that is symmetric
// and positive. Exact where the rank is not small beside the matrix; subspace iteration elsewhere, since
// Eigen's solver takes a minute for 4,096 rows.
MatrixXd leading_vectors(Team& team, const MatrixXd& matrix, Index rank) {
  const Index n = matrix.rows(), width = rank + kSpareVectors;
  if (2 * width >= n) {
    return Eigen::SelfAdjointEigenSolver<MatrixXd>(matrix).eigenvectors().rightCols(rank);
  }
  Random random(1);
  MatrixXd basis = MatrixXd::NullaryExpr(n, width, [&] { return double{random.symmetric()}; });
  for (int round = 0; round < kRounds; ++round) {
    const Eigen::HouseholderQR<MatrixXd> factored(product_of(team, matrix, basis));
    basis.setIdentity(n, width);
    basis = factored.householderQ() * basis;
  }
  const MatrixXd inside = basis.transpose() * product_of(team, matrix, basis);
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solved(inside);
  return basis * solved.eigenvectors().rightCols(rank);
}

}  // namespace

InputMoments::InputMoments(uint32_t d_model)
    : d_model_(d_model), sum_(d_model), products_(uint64_t{d_model} * d_model) {}

// In f64, or rounding would be larger than the variances that count as none.
void InputMoments::add(Team& team, std::span<const float> x) {
  const Index n = d_model_, tokens = static_cast<Index>(x.size()) / n;
  const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> inputs =
      RowsView(x.data(), tokens, n).cast<double>();
  Eigen::Map<VectorXd>(sum_.data(), n) += inputs.colwise().sum().transpose();
  Eigen::Map<MatrixXd> products(products_.data(), n, n);
  in_pieces(team, n, kColumns, 1.0 * tokens * n * n, [&](Index at, Index count) {
    products.block(at, at, n - at, count).noalias() +=
        inputs.rightCols(n - at).transpose() * inputs.middleCols(at, count);
  });
  tokens_ += static_cast<double>(tokens);
}

std::vector<double> InputMoments::mean() const {
  std::vector<double> mean(sum_);
  for (double& value : mean) value /= tokens_;
  return mean;
}

std::vector<double> InputMoments::covariance() const {
  const std::vector<double> at = mean();
  std::vector<double> covariance(products_.size());
  for (uint64_t column = 0; column < d_model_; ++column) {
    for (uint64_t row = column; row < d_model_; ++row) {
      const uint64_t place = column * d_model_ + row;
      covariance[place] = products_[place] / tokens_ - at[row] * at[column];
    }
  }
  return covariance;
}

// With the covariance L L^T and V the leading right singular vectors of weight L: a = V^T L^-1 and b = weight
// L V. The symmetric root in place of L would give the same a and b, for a second decomposition.
LowRank start_of(const Decision& decision, const InputMoments& moments, uint32_t rank, Team& team) {
  const std::vector<double> means = moments.mean();
  std::vector<double> covariance = moments.covariance();
  const auto d_model = static_cast<Index>(means.size()), d_ff = static_cast<Index>(decision.bias.size());
  const RowsView weight(decision.weight.data(), d_ff, d_model);
  const Eigen::Map<const VectorXd> mean(means.data(), d_model);
  Eigen::Map<MatrixXd> root(covariance.data(), d_model, d_model);
  const double largest = std::max(root.diagonal().maxCoeff(), mean.array().square().maxCoeff());
  root.diagonal().array() += largest > 0 ? largest * kLeastVariance : 1;
  const Eigen::LLT<Eigen::Ref<MatrixXd>> factored(root);
  const MatrixXd lower = factored.matrixL();

  const MatrixXd energy = product_of(team, lower.transpose(), product_of(team, gram_of(team, weight), lower));
  const MatrixXd leading = leading_vectors(team, energy, rank);
  const double deviation = std::sqrt(std::max(0.0, energy.trace()) / static_cast<double>(d_ff));
  const double scale = deviation > 0 ? kStartDeviation / deviation : 1;

  LowRank start{rank, static_cast<uint32_t>(d_model), static_cast<uint32_t>(d_ff), {}, {}, {}};
  start.a.resize(uint64_t{rank} * means.size());
  start.b.resize(decision.bias.size() * rank);
  start.bias.resize(decision.bias.size());
  Eigen::Map<Rows> a(start.a.data(), rank, d_model), b(start.b.data(), d_ff, rank);
  a = factored.matrixU().solve(leading).transpose().cast<float>();
  const Rows directions = (lower * leading).cast<float>();
  in_pieces(team, d_ff, kRows, 1.0 * d_ff * d_model * rank, [&](Index at, Index count) {
    b.middleRows(at, count).noalias() = weight.middleRows(at, count) * directions;
  });
  const VectorXd of_mean = a.cast<double>() * mean;
  for (Index i = 0; i < d_ff; ++i) {
    const double missed = weight.row(i).cast<double>().dot(mean) - b.row(i).cast<double>().dot(of_mean);
    start.bias[static_cast<size_t>(i)] =
        static_cast<float>(scale * (decision.bias[static_cast<size_t>(i)] + missed));
  }
  b *= static_cast<float>(scale);
  return start;
}

}  // namespace tierd
