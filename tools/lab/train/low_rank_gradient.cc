#include "tools/lab/train/low_rank_gradient.h"

#include <Eigen/Core>
#include <numeric>

#include "tools/lab/train/pieces.h"

namespace tierd {
namespace {

using Eigen::Index;
using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using RowsView = Eigen::Map<const Rows>;
using Row = Eigen::Map<Eigen::ArrayXf>;

constexpr uint64_t kTokens = 32;     // of a piece
constexpr uint64_t kNeurons = 256;   // of a piece: their scores of a batch stay in a cache
constexpr uint64_t kChannels = 128;  // of a piece

// Turns scores of one token into the derivatives of the loss by them; returns the loss. `active` and
// `inactive` are the weights of a pair. With z the score, negated where the neuron is active, the loss of a
// pair is log(1 + e^z) and its derivative by z is sigmoid(z); both are computed from e^-|z|. `signs` and
// `powers` are buffers.
double differentiate(const float* contributions, float active, float inactive, Row scores, Row signs,
                     Row powers) {
  for (Index i = 0; i < scores.size(); ++i) {
    const bool is_active = contributions[i] > 0;
    scores[i] = is_active ? -scores[i] : scores[i];
    signs[i] = is_active ? -active : inactive;
  }
  powers = (-scores.abs()).exp();
  const double loss = (signs.abs() * (scores.max(0.0F) + (1 + powers).log())).sum();
  for (Index i = 0; i < scores.size(); ++i)
    scores[i] = signs[i] * (scores[i] > 0 ? 1 : powers[i]) / (1 + powers[i]);
  return loss;
}

}  // namespace

double LowRankGradient::compute(const LowRank& predictor, const TokenBatch& batch, PairWeights weights,
                                LowRank& gradient) {
  const Index tokens = batch.tokens, rank = predictor.rank, d_model = predictor.d_model,
              d_ff = predictor.d_ff;
  gradient = {predictor.rank,        predictor.d_model,     predictor.d_ff,
              std::move(gradient.a), std::move(gradient.b), std::move(gradient.bias)};
  gradient.a.resize(predictor.a.size());
  gradient.b.resize(predictor.b.size());
  gradient.bias.resize(predictor.bias.size());
  const uint64_t pieces = (predictor.d_ff + kNeurons - 1) / kNeurons;
  hidden_.resize(tokens * rank);
  slopes_.resize(pieces * hidden_.size());
  losses_.resize(pieces);
  const RowsView x(batch.x.data(), tokens, d_model);
  const RowsView a(predictor.a.data(), rank, d_model), b(predictor.b.data(), d_ff, rank);
  Eigen::Map<Rows> hidden(hidden_.data(), tokens, rank);
  const auto slopes = [&](uint64_t piece) {
    return Eigen::Map<Rows>(slopes_.data() + piece * hidden_.size(), tokens, rank);
  };
  const double pairs = 1.0 * tokens * d_ff;
  const auto active = static_cast<float>(weights.active / pairs);
  const auto inactive = static_cast<float>(weights.inactive / pairs);

  in_pieces(team_, tokens, kTokens, 1.0 * tokens * rank * d_model, [&](Index at, Index count) {
    hidden.middleRows(at, count).noalias() = x.middleRows(at, count) * a.transpose();
  });
  in_pieces(team_, d_ff, kNeurons, 4 * pairs * rank, [&](Index at, Index count) {
    const auto piece = static_cast<uint64_t>(at) / kNeurons;
    const auto part = b.middleRows(at, count);
    const Eigen::Map<const Eigen::RowVectorXf> bias(predictor.bias.data() + at, count);
    Rows scores(tokens, count);
    scores.noalias() = hidden * part.transpose();
    scores.rowwise() += bias;
    std::vector<float> buffer(static_cast<size_t>(2 * count));
    double loss = 0;
    for (Index t = 0; t < tokens; ++t) {
      loss += differentiate(batch.contributions.data() + t * d_ff + at, active, inactive,
                            Row(&scores(t, 0), count), Row(buffer.data(), count),
                            Row(buffer.data() + count, count));
    }
    losses_[piece] = loss;
    Eigen::Map<Rows>(gradient.b.data() + at * rank, count, rank).noalias() = scores.transpose() * hidden;
    Eigen::Map<Eigen::RowVectorXf>(gradient.bias.data() + at, count) = scores.colwise().sum();
    slopes(piece).noalias() = scores * part;
  });
  in_pieces(team_, tokens, kTokens, 1.0 * tokens * rank * static_cast<double>(pieces),
            [&](Index at, Index count) {
              for (uint64_t piece = 1; piece < pieces; ++piece)
                slopes(0).middleRows(at, count) += slopes(piece).middleRows(at, count);
            });
  Eigen::Map<Rows> by_a(gradient.a.data(), rank, d_model);
  in_pieces(team_, d_model, kChannels, 1.0 * tokens * rank * d_model, [&](Index at, Index count) {
    by_a.middleCols(at, count).noalias() = slopes(0).transpose() * x.middleCols(at, count);
  });
  return std::accumulate(losses_.begin(), losses_.end(), 0.0);
}

}  // namespace tierd
