// The trainer by libtorch: part of a shared object of its own, see trainer_library.h.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>

#include "core/base/random.h"
#include "tools/lab/train/trainer_entry.h"

namespace tierd {
namespace {

using torch::Tensor;

constexpr uint32_t kMomentTokens = 1024;  // read at once
// A direction of x counts as constant if it varies less than this share of the largest variance or square of
// the mean.
constexpr double kLeastVariance = 1e-6;
// The first scores deviate by about so much. The larger, the surer the start is of itself, and the longer
// Adam needs to tell it otherwise.
constexpr double kStartDeviation = 2;

Tensor matrix(const std::vector<float>& values, int64_t rows, int64_t cols) {
  return torch::from_blob(const_cast<float*>(values.data()), {rows, cols});  // which is only read
}

std::span<float> values_in(const Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

std::vector<float> copy_of(const Tensor& parameter) {
  const std::span<float> values = values_in(parameter);
  return {values.begin(), values.end()};
}

class LayerTrainer {
 public:
  LayerTrainer(const LayerTask& task, const TrainOptions& options)
      : task_(task),
        options_(options),
        weight_(matrix(task.decision.weight, task.d_ff, task.d_model).to(torch::kFloat64)),
        decision_bias_(matrix(task.decision.bias, 1, task.d_ff)[0].to(torch::kFloat64)) {}

  Result<LowRank> train() {
    TIERD_TRY(measure());
    start();
    TIERD_TRY(descend());
    return LowRank{.rank = task_.rank,
                   .d_model = task_.d_model,
                   .d_ff = task_.d_ff,
                   .a = copy_of(a_),
                   .b = copy_of(b_),
                   .bias = copy_of(bias_)};
  }

 private:
  // Mean and covariance of the inputs, and the share of active pairs.
  Status measure() {
    Tensor sum = torch::zeros({task_.d_model}, torch::kFloat64);
    Tensor products = torch::zeros({task_.d_model, task_.d_model}, torch::kFloat64);
    double active = 0;
    for (uint32_t at = 0; at < task_.tokens; at += kMomentTokens) {
      std::vector<uint32_t> slice(std::min(kMomentTokens, task_.tokens - at));
      std::iota(slice.begin(), slice.end(), at);
      TIERD_TRY(read(slice));
      sum += x_.sum(0, false, torch::kFloat64);
      products += x_.t().mm(x_);
      active += active_.sum(torch::kFloat64).item<double>();
    }
    mean_ = sum / static_cast<double>(task_.tokens);
    covariance_ = products / static_cast<double>(task_.tokens) - torch::outer(mean_, mean_);
    active_share_ = active / (static_cast<double>(task_.tokens) * task_.d_ff);
    return {};
  }

  // The b a of this rank that is nearest to the decision's weight over inputs of this covariance C: with C =
  // R R and V the leading right singular vectors of weight R, b = weight R V and a = V^T R^-1. So every
  // component of a x varies by 1, and what b a misses of the mean goes into the bias.
  void start() {
    auto [variances, directions] = torch::linalg_eigh(covariance_);
    const double largest = std::max(variances.max().item<double>(), mean_.square().max().item<double>());
    variances = variances.clamp_min(largest > 0 ? largest * kLeastVariance : 1);
    const Tensor root = (directions * variances.sqrt()).mm(directions.t());
    const Tensor inverse = (directions * variances.rsqrt()).mm(directions.t());
    const Tensor whitened = weight_.mm(root);
    const Tensor vectors = std::get<1>(torch::linalg_eigh(whitened.t().mm(whitened)));
    const Tensor leading = vectors.narrow(1, task_.d_model - task_.rank, task_.rank);
    const Tensor a = leading.t().mm(inverse);
    const Tensor b = whitened.mm(leading);
    const Tensor bias = decision_bias_ + (weight_ - b.mm(a)).mv(mean_);
    const double deviation = whitened.square().sum(1).mean().sqrt().item<double>();
    const double scale = deviation > 0 ? kStartDeviation / deviation : 1;
    const auto parameter = [](const Tensor& value) {
      return value.to(torch::kFloat32).contiguous().requires_grad_(true);
    };
    a_ = parameter(a);
    b_ = parameter(b * scale);
    bias_ = parameter(bias * scale);
  }

  Status descend() {
    torch::optim::Adam adam({a_, b_, bias_}, torch::optim::AdamOptions(options_.learning_rate));
    // Half of the weight for each kind, whatever their shares; nothing for a kind that does not occur.
    const double on = active_share_ > 0 ? 0.5 / active_share_ : 0;
    const double off = active_share_ < 1 ? 0.5 / (1 - active_share_) : 0;
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
        std::sort(drawn.begin(), drawn.end());  // as they lie in the file
        TIERD_TRY(read(drawn));
        for (auto& group : adam.param_groups()) {
          group.options().set_lr(options_.learning_rate * (1 - step / steps));
        }
        ++step;
        const Tensor scores = torch::addmm(bias_, x_.mm(a_.t()), b_.t());
        const Tensor loss =
            torch::binary_cross_entropy_with_logits(scores, active_, active_ * (on - off) + off);
        adam.zero_grad();
        loss.backward();
        adam.step();
        loss_sum += loss.item<double>() * (end - begin);
        if (!std::isfinite(loss_sum)) {
          return Error{Code::invalid_argument, "--learning-rate",
                       fmt::format("in layer {}, epoch {}, the loss is no number any more; less than {} is "
                                   "needed",
                                   task_.layer, epoch + 1, options_.learning_rate)};
        }
        task_.progress(epoch, end, loss_sum / end);
      }
    }
    return {};
  }

  // x_ [tokens x d_model] and active_ [tokens x d_ff], 1 or 0.
  Status read(std::span<const uint32_t> tokens) {
    const auto n = static_cast<int64_t>(tokens.size());
    x_ = torch::empty({n, task_.d_model});
    const Tensor contributions = torch::empty({n, task_.d_ff});
    TIERD_TRY(task_.read(tokens, values_in(x_), values_in(contributions)));
    active_ = (contributions > 0).to(torch::kFloat32);
    return {};
  }

  const LayerTask& task_;
  const TrainOptions& options_;
  const Tensor weight_;         // f64 [d_ff x d_model]
  const Tensor decision_bias_;  // f64 [d_ff]
  Tensor mean_;                 // f64 [d_model]
  Tensor covariance_;           // f64 [d_model x d_model]
  double active_share_ = 0;
  Tensor x_, active_;    // of the batch
  Tensor a_, b_, bias_;  // what is trained
};

}  // namespace
}  // namespace tierd

extern "C" __attribute__((visibility("default"))) void tierd_train_layer(
    const tierd::LayerTask& task, const tierd::TrainOptions& options,
    tierd::Result<tierd::LowRank>& trained) {
  try {
    if (options.threads != 0) torch::set_num_threads(static_cast<int>(options.threads));
    trained = tierd::LayerTrainer(task, options).train();
  } catch (const c10::Error& error) {
    trained = tierd::Error{tierd::Code::internal, fmt::format("layer {}", task.layer),
                           error.what_without_backtrace()};
  }
}

static_assert(std::is_same_v<decltype(tierd_train_layer), tierd::TrainerEntry>);
