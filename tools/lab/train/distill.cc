#include "tools/lab/train/distill.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/model/text/tokenizer.h"
#include "core/store/source.h"
#include "core/system/memory_limits.h"
#include "tools/evaluation/text_windows.h"
#include "tools/lab/train/model_folder.h"
#include "tools/lab/train/progress_line.h"
#include "tools/lab/train/refused_models.h"
#include "tools/lab/train/trainer_library.h"

namespace tierd {
namespace {

using Window = std::vector<uint32_t>;

struct Windows {
  std::vector<Window> trained;
  std::vector<Window> held_out;  // the last ones: those taken at random would have neighbours trained on
};

Result<Windows> read_windows(const TensorSource& source, const DistillPlan& plan) {
  if (plan.sequence > source.config().context_length) {
    return Error{Code::invalid_argument, "--sequence",
                 fmt::format("{} tokens, the model has a context of {}", plan.sequence,
                             source.config().context_length)};
  }
  if (source.vocab() == nullptr)
    return Error{Code::not_found, source.path(), "brings no tokenizer; name one with --tokenizer"};
  TIERD_ASSIGN(const auto tokenizer, make_tokenizer(*source.vocab(), source.path()));
  Windows windows;
  TIERD_ASSIGN(windows.trained, read_text_windows(*tokenizer, plan.text, {}, plan.sequence));
  const size_t all = windows.trained.size();
  const auto held_out = static_cast<size_t>(std::ceil(static_cast<double>(all) * plan.held_out));
  if (held_out >= all) {
    return Error{
        Code::invalid_argument, plan.text,
        fmt::format("{} windows of {} tokens, of which {} are to be held out: none is left to train on", all,
                    plan.sequence, held_out)};
  }
  const auto first_held_out = windows.trained.end() - static_cast<std::ptrdiff_t>(held_out);
  windows.held_out.assign(first_held_out, windows.trained.end());
  windows.trained.erase(first_held_out, windows.trained.end());
  return windows;
}

Result<Network> read_network(const TensorSource& source) {
  TIERD_TRY(refuse_mixture(source));
  Network network{.config = source.config(), .frequencies = {}, .tensors = {}};
  if (network.config.position != PositionKind::learned)
    network.frequencies = rope_frequencies(network.config);
  for (const TensorInfo& info : source.tensors()) {
    NamedTensor& tensor = network.tensors.emplace_back();
    tensor.name = info.name;
    tensor.rows = info.rows;
    tensor.cols = info.cols;
    TIERD_ASSIGN(tensor.values, source.read_f32(info));
  }
  return network;
}

Result<Loss> judge(Distiller& distiller, const std::vector<Window>& windows, double sparsity) {
  Loss loss;
  for (const Window& window : windows) {
    TIERD_ASSIGN(const auto expected, distiller.teacher_logits(window));
    TIERD_ASSIGN(const auto found, distiller.student_logits(window, sparsity));
    const size_t vocab = expected.size() / window.size();
    for (size_t i = 0; i + 1 < window.size(); ++i) {
      const auto row = [&](const std::vector<float>& logits) {
        return std::span(logits).subspan(i * vocab, vocab);
      };
      loss.add(row(expected), row(found), window[i + 1]);
    }
  }
  return loss;
}

// Batches of the windows in an order that the seed decides, all of them once before any of them again.
class Batches {
 public:
  Batches(const std::vector<Window>& windows, const DistillPlan& plan)
      : windows_(windows),
        an_epoch_(static_cast<uint32_t>((windows.size() - 1) / plan.batch + 1)),
        random_(plan.seed),
        order_(windows.size()) {
    std::iota(order_.begin(), order_.end(), 0U);
  }

  uint32_t an_epoch() const { return an_epoch_; }

  std::vector<Window> next() {
    if (at_ == 0) {
      for (auto i = static_cast<uint32_t>(order_.size()) - 1; i > 0; --i) {
        std::swap(order_[i], order_[random_.below(i + 1)]);
      }
    }
    const uint64_t n = order_.size();  // so that all batches are of nearly one size
    std::vector<Window> batch;
    for (uint64_t i = n * at_ / an_epoch_; i < n * (at_ + 1) / an_epoch_; ++i) {
      batch.push_back(windows_[order_[i]]);
    }
    at_ = (at_ + 1) % an_epoch_;
    return batch;
  }

 private:
  const std::vector<Window>& windows_;
  uint32_t an_epoch_;
  uint32_t at_ = 0;  // of the epoch
  Random random_;
  std::vector<uint32_t> order_;
};

// The loss at each step.
Result<std::vector<double>> train(Distiller& distiller, const std::vector<Window>& windows,
                                  const DistillPlan& plan) {
  Batches batches(windows, plan);
  const uint32_t steps = plan.steps.value_or(plan.epochs * batches.an_epoch());
  ProgressLine line(plan.quiet);
  std::vector<double> losses;
  uint64_t tokens = 0;
  for (uint32_t step = 0; step < steps; ++step) {
    const std::vector<Window> batch = batches.next();
    const double rate = learning_rate_at(step, steps, plan.warmup, plan.learning_rate);
    TIERD_ASSIGN(const double loss, distiller.step(batch, rate));
    losses.push_back(loss);
    for (const Window& window : batch) tokens += window.size();
    const uint32_t done = step + 1;
    if (!line.due(done == steps)) continue;
    const double share = static_cast<double>(done) / steps;
    line.show(fmt::format("step {} of {}: {:3.0f} %, loss {:.4f}, {:.0f} tokens/s{}", done, steps,
                          100 * share, loss, static_cast<double>(tokens) / line.seconds(), line.left(share)));
  }
  return losses;
}

double mean(std::span<const double> values) {
  return values.empty()
             ? 0
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

const char* name_of(FakeQuant how) {
  switch (how) {
    case FakeQuant::none:
      return "none";
    case FakeQuant::q4_0_rows:
      return "q4_0";
    case FakeQuant::q4_0_columns:
      return "q4_0-channels";
  }
  return "";
}

nlohmann::ordered_json provenance_of(const DistillPlan& plan, const DistillReport& report) {
  const auto of = [](const Loss& loss) {
    return nlohmann::ordered_json{{"perplexity", loss.subject_perplexity()},
                                  {"divergence", loss.mean_divergence()}};
  };
  return {{"made_by", "tier-train distill"},
          {"model", plan.model},
          {"text", plan.text},
          {"sparsity", plan.distiller.sparsity},
          {"fake_quant", name_of(plan.distiller.fake_quant)},
          {"loss", plan.distiller.teacher ? "teacher" : "text"},
          {"mask_gradient", plan.distiller.straight_through ? "straight-through" : "zero"},
          {"steps", report.steps},
          {"batch", plan.batch},
          {"sequence", plan.sequence},
          {"learning_rate", plan.learning_rate},
          {"warmup", plan.warmup},
          {"weight_decay", plan.distiller.weight_decay},
          {"clip", plan.distiller.clip},
          {"seed", plan.seed},
          {"first_loss", report.first_loss},
          {"last_loss", report.last_loss},
          {"held_out",
           {{"share", plan.held_out},
            {"tokens", report.after.tokens()},
            {"teacher_perplexity", report.after.reference_perplexity()},
            {"before", of(report.before)},
            {"after", of(report.after)},
            {"dense", of(report.dense)}}}};
}

// Checks that there is room for libtorch, the weights of the teacher, and the student's weights, gradients
// and two moments. The activations of a step are not known before it, and come on top.
Status check_memory(const TensorSource& source, const DistillerOptions& options) {
  if (options.cuda) return {};
  uint64_t values = 0;
  for (const TensorInfo& tensor : source.tensors()) values += tensor.rows * tensor.cols;
  const uint64_t copies = options.teacher ? 5 : 4;
  return expect_memory(kTrainerBytes + copies * values * sizeof(float), "distill");
}

}  // namespace

double learning_rate_at(uint32_t step, uint32_t steps, double warmup, double highest) {
  const double rising = warmup * steps;
  if (step + 1 <= rising) return highest * (step + 1) / rising;
  const double share = (step + 1 - rising) / (steps - rising + 1);
  return highest * 0.5 * (1 + std::cos(std::numbers::pi * share));
}

Result<DistillReport> distill(const DistillPlan& plan) {
  TIERD_ASSIGN(const auto source, open_source(plan.model, {.tokenizer = plan.tokenizer}));
  TIERD_TRY(ModelFolder::accepts(*source));
  TIERD_TRY(check_memory(*source, plan.distiller));
  TIERD_ASSIGN(const Windows windows, read_windows(*source, plan));
  TIERD_ASSIGN(const std::unique_ptr<Distiller> distiller, [&]() -> Result<std::unique_ptr<Distiller>> {
    TIERD_ASSIGN(const Network network, read_network(*source));
    return make_distiller(network, plan.distiller);
  }());
  TIERD_ASSIGN(const ModelFolder folder, ModelFolder::create(*source, plan.out));

  const double sparsity = plan.distiller.sparsity;
  DistillReport report;
  TIERD_ASSIGN(report.before, judge(*distiller, windows.held_out, sparsity));
  TIERD_ASSIGN(const std::vector<double> losses, train(*distiller, windows.trained, plan));
  TIERD_ASSIGN(report.after, judge(*distiller, windows.held_out, sparsity));
  TIERD_ASSIGN(report.dense, judge(*distiller, windows.held_out, 0));
  report.steps = static_cast<uint32_t>(losses.size());
  const size_t tenth = losses.size() / 10 + 1;
  report.first_loss = mean(std::span(losses).first(std::min(tenth, losses.size())));
  report.last_loss = mean(std::span(losses).last(std::min(tenth, losses.size())));

  TIERD_TRY(
      folder.write([&](size_t tensor) { return distiller->weights(tensor); }, provenance_of(plan, report)));
  return report;
}

std::string to_table(const DistillReport& report, double sparsity) {
  const double dense = report.after.reference_perplexity();
  std::string text =
      fmt::format("{} tokens held out{:>17}{:>10}{:>22}\n{:<34}{:>11.3f}\n", report.after.tokens(),
                  "perplexity", "", "KL, nats a token", "as it came, dense", dense);
  const auto row = [&](const std::string& title, const Loss& loss) {
    text += fmt::format("{:<34}{:>11.3f}{:>+8.2f} %{:>22.4f}\n", title, loss.subject_perplexity(),
                        100 * (loss.subject_perplexity() / dense - 1), loss.mean_divergence());
  };
  row(fmt::format("as it came, sparsity {:g}", sparsity), report.before);
  row(fmt::format("distilled, sparsity {:g}", sparsity), report.after);
  row("distilled, dense", report.dense);
  return text;
}

}  // namespace tierd
