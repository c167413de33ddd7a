#include "tools/lab/train/layer_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <system_error>
#include <utility>

#include "core/base/random.h"
#include "core/system/cores.h"
#include "tools/lab/train/low_rank_gradient.h"
#include "tools/lab/train/pieces.h"

namespace tierd {
namespace {

// Adam (Kingma and Ba 2014) on one matrix, with the constants of its paper.
class Adam {
 public:
  explicit Adam(size_t size) : first_(size), second_(size) {}

  // `steps`: this one included.
  void step(Team& team, std::vector<float>& values, const std::vector<float>& gradient, double rate,
            double steps) {
    constexpr double kFirst = 0.9, kSecond = 0.999;
    constexpr float kLeast = 1e-8F;
    const auto scale = static_cast<float>(rate / (1 - std::pow(kFirst, steps)));
    const auto inverse = static_cast<float>(1 / std::sqrt(1 - std::pow(kSecond, steps)));
    constexpr auto kNew = static_cast<float>(1 - kFirst), kNewSquare = static_cast<float>(1 - kSecond);
    constexpr uint64_t kValues = 16384;  // of a piece
    in_pieces(team, values.size(), kValues, 16.0 * static_cast<double>(values.size()),
              [&](int64_t begin, int64_t length) {
                for (int64_t i = begin; i < begin + length; ++i) {
                  first_[i] += kNew * (gradient[i] - first_[i]);
                  second_[i] += kNewSquare * (gradient[i] * gradient[i] - second_[i]);
                  values[i] -= scale * first_[i] / (std::sqrt(second_[i]) * inverse + kLeast);
                }
              });
  }

 private:
  std::vector<float> first_, second_;  // the moments
};

class LayerTrainer {
 public:
  LayerTrainer(const LayerTask& task, const TrainOptions& options)
      : task_(task),
        options_(options),
        team_({.workers = options.threads != 0 ? options.threads : available_cores()}) {}

  Result<LowRank> train() {
    InputMoments moments(task_.d_model);
    TIERD_TRY(measure(moments));
    LowRank predictor = start_of(task_.decision, moments, task_.rank, team_);
    TIERD_TRY(descend(predictor));
    return predictor;
  }

 private:
  Status measure(InputMoments& moments) {
    uint64_t active = 0;
    for (uint32_t at = 0; at < task_.tokens; at += kMomentTokens) {
      std::vector<uint32_t> slice(std::min(kMomentTokens, task_.tokens - at));
      std::iota(slice.begin(), slice.end(), at);
      TIERD_TRY(read(slice));
      moments.add(team_, x_);
      active += static_cast<uint64_t>(
          std::count_if(contributions_.begin(), contributions_.end(), [](float value) { return value > 0; }));
    }
    active_share_ = static_cast<double>(active) / (static_cast<double>(task_.tokens) * task_.d_ff);
    return {};
  }

  Status descend(LowRank& predictor) {
    // Half of the weight for each kind, whatever their shares; nothing for a kind that does not occur.
    const PairWeights weights{.active = active_share_ > 0 ? 0.5 / active_share_ : 0,
                              .inactive = active_share_ < 1 ? 0.5 / (1 - active_share_) : 0};
    LowRankGradient gradients(team_);
    LowRank gradient;
    Adam a(predictor.a.size()), b(predictor.b.size()), bias(predictor.bias.size());
    Random random(options_.seed + task_.layer);
    std::vector<uint32_t> order(task_.tokens);
    std::iota(order.begin(), order.end(), 0U);
    const uint32_t batches = (task_.tokens - 1) / options_.batch + 1;  // of nearly one size
    const double steps = static_cast<double>(batches) * options_.epochs;
    double step = 0;
    for (uint32_t epoch = 0; epoch < options_.epochs; ++epoch) {
      for (uint32_t i = task_.tokens - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
      double loss_sum = 0;
      for (uint32_t batch = 0; batch < batches; ++batch) {
        const auto begin = static_cast<uint32_t>(uint64_t{task_.tokens} * batch / batches);
        const auto end = static_cast<uint32_t>(uint64_t{task_.tokens} * (batch + 1) / batches);
        std::vector<uint32_t> drawn(order.begin() + begin, order.begin() + end);
        std::sort(drawn.begin(), drawn.end());  // the order of the file
        TIERD_TRY(read(drawn));
        const double loss =
            gradients.compute(predictor, {end - begin, x_, contributions_}, weights, gradient);
        const double rate = options_.learning_rate * (1 - step / steps);
        ++step;
        a.step(team_, predictor.a, gradient.a, rate, step);
        b.step(team_, predictor.b, gradient.b, rate, step);
        bias.step(team_, predictor.bias, gradient.bias, rate, step);
        loss_sum += loss * (end - begin);
        if (!std::isfinite(loss_sum)) {
          return Error{Code::invalid_argument, "--learning-rate",
                       fmt::format("in layer {}, epoch {}, the loss is not a number; set less than {}",
                                   task_.layer, epoch + 1, options_.learning_rate)};
        }
        task_.progress(epoch, end, loss_sum / end);
      }
    }
    return {};
  }

  // Fills x_ and contributions_.
  Status read(std::span<const uint32_t> tokens) {
    x_.resize(tokens.size() * task_.d_model);
    contributions_.resize(tokens.size() * task_.d_ff);
    return task_.read(tokens, x_, contributions_);
  }

  const LayerTask& task_;
  const TrainOptions& options_;
  Team team_;
  double active_share_ = 0;
  std::vector<float> x_, contributions_;  // of the tokens read last
};

}  // namespace

Result<LowRank> train_layer(const LayerTask& task, const TrainOptions& options) {
  try {
    return LayerTrainer(task, options).train();
  } catch (const std::system_error& error) {
    return Error{Code::no_space, "--threads", error.what()};
  }
}

}  // namespace tierd
