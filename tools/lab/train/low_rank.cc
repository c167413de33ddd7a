#include "tools/lab/train/low_rank.h"

#include <Eigen/Core>

namespace tierd {

void score(const LowRank& predictor, std::span<const float> x, std::span<float> scores) {
  using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using RowsView = Eigen::Map<const Rows>;
  const Eigen::Index rank = predictor.rank, d_model = predictor.d_model, d_ff = predictor.d_ff;
  const auto tokens = static_cast<Eigen::Index>(x.size()) / d_model;
  const Rows hidden =
      RowsView(x.data(), tokens, d_model) * RowsView(predictor.a.data(), rank, d_model).transpose();
  Eigen::Map<Rows> out(scores.data(), tokens, d_ff);
  out.noalias() = hidden * RowsView(predictor.b.data(), d_ff, rank).transpose();
  out.rowwise() += Eigen::Map<const Eigen::RowVectorXf>(predictor.bias.data(), d_ff);
}

}  // namespace tierd
