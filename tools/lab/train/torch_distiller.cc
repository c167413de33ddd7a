// Distillation by libtorch: part of the trainer's shared object, see distiller.h.
#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <type_traits>
#include <utility>

#include "core/model/layout/encoding.h"
#include "tools/lab/train/torch_fake_quant.h"
#include "tools/lab/train/torch_transformer.h"
#include "tools/lab/train/trainer_entry.h"

namespace tierd {
namespace {

using torch::Tensor;

// An operator of a layer: what is masked and, if anything is, rounded.
bool is_operator(const NamedTensor& tensor) {
  return tensor.rows > 1 && tensor.name.starts_with("layers.");
}

Tensor copy_on(torch::Device device, const NamedTensor& tensor) {
  const auto rows = static_cast<int64_t>(tensor.rows), cols = static_cast<int64_t>(tensor.cols);
  float* const data = const_cast<float*>(tensor.values.data());  // which is only read
  const Tensor view =
      tensor.rows == 1 ? torch::from_blob(data, {cols}) : torch::from_blob(data, {rows, cols});
  return view.to(device, torch::kFloat32, false, /*copy=*/true);
}

template <class T>
Result<T> caught(const char* doing, const std::function<Result<T>()>& compute) {
  try {
    return compute();
  } catch (const c10::Error& error) {
    return Error{Code::internal, doing, error.what_without_backtrace()};
  }
}

class TorchDistiller final : public Distiller {
 public:
  TorchDistiller(const Network& network, const DistillerOptions& options)
      : options_(options),
        device_(options.cuda ? torch::kCUDA : torch::kCPU),
        transformer_(network.config, torch::tensor(network.frequencies, torch::kFloat32).to(device_)) {
    std::vector<Tensor> parameters;
    for (const NamedTensor& tensor : network.tensors) {
      Tensor teacher = copy_on(device_, tensor);
      parameters.push_back(teacher.clone().requires_grad_(true));
      student_.emplace(tensor.name, parameters.back());
      teacher_.emplace(tensor.name, std::move(teacher));
      names_.push_back(tensor.name);
      if (is_operator(tensor)) operators_.push_back(tensor.name);
    }
    adam_ = std::make_unique<torch::optim::AdamW>(
        std::move(parameters), torch::optim::AdamWOptions().weight_decay(options.weight_decay));
  }

  Result<double> step(std::span<const std::vector<uint32_t>> windows, double learning_rate) override {
    return caught<double>("distilling", [&]() -> Result<double> {
      double tokens = 0, loss_sum = 0;
      for (const auto& window : windows) {
        tokens += static_cast<double>(window.size() - (options_.teacher ? 0 : 1));  // the first follows none
      }
      adam_->zero_grad();
      const TorchWeights seen = as_seen();
      for (const auto& window : windows) {
        const Tensor ids = ids_of(window);
        const Tensor logits = transformer_.forward(seen, ids, {options_.sparsity, options_.straight_through});
        const Tensor loss = (options_.teacher ? divergence(ids, logits) : surprise(ids, logits)) / tokens;
        loss.backward();
        loss_sum += loss.item<double>();
      }
      const std::vector<Tensor>& parameters = adam_->param_groups().front().params();
      const double norm =
          torch::nn::utils::clip_grad_norm_(parameters, options_.clip > 0 ? options_.clip : HUGE_VAL);
      if (!std::isfinite(loss_sum) || !std::isfinite(norm)) {
        return Error{Code::invalid_argument, "--learning-rate",
                     "the loss or its gradient is no number any more; a lower rate is needed"};
      }
      adam_->param_groups().front().options().set_lr(learning_rate);
      adam_->step();
      return loss_sum;
    });
  }

  Result<std::vector<float>> teacher_logits(std::span<const uint32_t> window) override {
    return caught<std::vector<float>>("the teacher", [&] {
      const torch::NoGradGuard no_gradients;
      return copy_of(transformer_.forward(teacher_, ids_of(window), {}));
    });
  }

  Result<std::vector<float>> student_logits(std::span<const uint32_t> window, double sparsity) override {
    return caught<std::vector<float>>("the student", [&] {
      const torch::NoGradGuard no_gradients;
      return copy_of(transformer_.forward(as_seen(), ids_of(window), {sparsity}));
    });
  }

  Result<std::vector<float>> weights(size_t tensor) override {
    return caught<std::vector<float>>("the student",
                                      [&] { return copy_of(student_.at(names_[tensor]).detach()); });
  }

 private:
  static Result<std::vector<float>> copy_of(const Tensor& tensor) {
    const Tensor here = tensor.to(torch::kCPU).contiguous();
    const float* const data = here.data_ptr<float>();
    return std::vector<float>(data, data + here.numel());
  }

  Tensor ids_of(std::span<const uint32_t> window) const {
    const std::vector<int64_t> ids(window.begin(), window.end());
    return torch::tensor(ids, torch::kInt64).to(device_);
  }

  // The student's weights as its layers compute with them; made once a step.
  TorchWeights as_seen() const {
    TorchWeights seen = student_;
    for (const std::string& name : operators_) {
      seen[name] = fake_quantized(seen[name], options_.fake_quant);
    }
    return seen;
  }

  // Returns the divergence of the student from the teacher, in nats, summed over tokens.
  Tensor divergence(const Tensor& ids, const Tensor& student_logits) const {
    Tensor expected;
    {
      const torch::NoGradGuard no_gradients;
      expected = transformer_.forward(teacher_, ids, {}).log_softmax(-1);
    }
    return torch::kl_div(student_logits.log_softmax(-1), expected, at::Reduction::Sum, /*log_target=*/true);
  }

  // Returns what the student did not expect in the tokens that follow, in nats, summed over tokens.
  static Tensor surprise(const Tensor& ids, const Tensor& student_logits) {
    const int64_t followed = ids.size(0) - 1;
    return torch::nll_loss(student_logits.narrow(0, 0, followed).log_softmax(-1), ids.narrow(0, 1, followed),
                           {}, at::Reduction::Sum);
  }

  DistillerOptions options_;
  torch::Device device_;
  TorchTransformer transformer_;
  std::vector<std::string> names_;      // in the network's order
  std::vector<std::string> operators_;  // of the layers
  TorchWeights teacher_;
  TorchWeights student_;
  std::unique_ptr<torch::optim::AdamW> adam_;
};

Status check(const Network& network, const DistillerOptions& options) {
  if (options.cuda && !torch::cuda::is_available()) {
    return Error{Code::unsupported, "--device",
                 "cuda: this libtorch sees no such device (Debian's is built without CUDA); cpu works"};
  }
  if (options.fake_quant == FakeQuant::none) return {};
  for (const NamedTensor& tensor : network.tensors) {
    const uint64_t length = options.fake_quant == FakeQuant::q4_0_rows ? tensor.cols : tensor.rows;
    if (!is_operator(tensor) || length % kQuantBlock == 0) continue;
    return Error{Code::invalid_argument, "--fake-quant",
                 fmt::format("{} is {} x {}, blocks of {} do not divide it", tensor.name, tensor.rows,
                             tensor.cols, kQuantBlock)};
  }
  return {};
}

Result<std::unique_ptr<Distiller>> make(const Network& network, const DistillerOptions& options) {
  if (options.threads != 0) torch::set_num_threads(static_cast<int>(options.threads));
  TIERD_TRY(check(network, options));
  return std::unique_ptr<Distiller>(std::make_unique<TorchDistiller>(network, options));
}

}  // namespace
}  // namespace tierd

extern "C" __attribute__((visibility("default"))) void tierd_make_distiller(
    const tierd::Network& network, const tierd::DistillerOptions& options,
    tierd::Result<std::unique_ptr<tierd::Distiller>>& made) {
  made = tierd::caught<std::unique_ptr<tierd::Distiller>>("distill",
                                                          [&] { return tierd::make(network, options); });
}

static_assert(std::is_same_v<decltype(tierd_make_distiller), tierd::DistillerEntry>);
