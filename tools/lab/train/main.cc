// tier-train: what is learned from a model: the tensors that predictors read, and weights that bear masked
// inputs.
#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/log.h"
#include "core/base/standard_streams.h"
#include "core/store/source.h"
#include "tools/command_line/command_line.h"
#include "tools/lab/train/distill.h"
#include "tools/lab/train/judge_ahead.h"
#include "tools/lab/train/kept_mass.h"
#include "tools/lab/train/train_predictors.h"
#include "tools/lab/train/write_gates.h"
#include "tools/lab/train/write_routers.h"

namespace tierd {
namespace {

constexpr const char* kAbout =
    "Makes the tensors by which predictors know the active neurons of feed-forward\n"
    "networks, and weights that lose less where predictor top-k leaves inputs out.\n"
    "\n"
    "  tier-train predictor opt-6.7b opt.profile.safetensors -o opt.low-rank.safetensors \\\n"
    "    --rank 0-27=128,28-31=1024\n"
    "  tier-train judge opt-6.7b opt.profile.safetensors opt.low-rank.safetensors --ahead 2\n"
    "  tier-train gate relu-llama -o gates.safetensors     # for the predictor gate, which is exact\n"
    "  tier-train router olmoe -o routers.safetensors      # for the predictor router, of mixtures\n"
    "  tier-train distill qwen2.5-0.5b text.txt -o qwen2.5-0.5b-top60 --sparsity 0.6\n"
    "\n"
    "Exit status: 0; 2 if nothing could be made, with one line on standard error\n"
    "that says why.";

struct DistillArguments {
  DistillPlan plan;
  std::string fake_quant = "none";
  std::string loss = "teacher";
  std::string mask_gradient = "straight-through";
  std::string device = "cpu";
};

struct Arguments {
  DistillArguments distill;
  AheadPlan ahead;
  std::string judged;  // the file of predictors with what they keep, if asked for
  PredictorPlan plan;  // `gate` and `router` use model, out and quiet
  std::string dtype = "f16";
  double threshold = 0.5;
  bool sweep = false;
  std::string json;
};

Status write_json(const std::string& path, nlohmann::json object, const std::string& model,
                  const std::string& activations, const std::string& predictor) {
  object["model"] = model;
  object["activations"] = activations;
  object["predictor"] = predictor;
  std::ofstream file(path, std::ios::trunc);
  file << object.dump(2) << '\n';
  file.close();
  if (!file) return Error{Code::io_error, path, "cannot be written"};
  return {};
}

Status train(Arguments& arguments) {
  PredictorPlan& plan = arguments.plan;
  plan.encoding = *by_name<Encoding>(arguments.dtype);
  plan.thresholds = {arguments.threshold};
  if (arguments.sweep) plan.thresholds = {0.3, 0.5, 0.7};
  TIERD_ASSIGN(const auto reports, train_predictors(plan));
  if (!arguments.json.empty()) {
    TIERD_TRY(write_json(arguments.json, to_json(reports), plan.model, plan.activations, plan.out));
  }
  return plan.quiet ? Status() : write_output(to_table(reports));
}

Status judge(Arguments& arguments) {
  const AheadPlan& plan = arguments.ahead;
  TIERD_ASSIGN(const auto reports, judge_ahead(plan));
  if (!arguments.judged.empty())
    TIERD_TRY(write_kept_mass({plan.model, plan.activations, plan.predictors, arguments.judged}));
  if (!arguments.json.empty()) {
    nlohmann::json object{{"fetched", plan.fetched}, {"distances", to_json(reports)}};
    TIERD_TRY(write_json(arguments.json, std::move(object), plan.model, plan.activations, plan.predictors));
  }
  return write_output(to_table(reports));
}

Status extract(Arguments& arguments) {
  TIERD_ASSIGN(const auto source, open_source(arguments.plan.model));
  return write_gates(*source, arguments.plan.out, arguments.plan.quiet);
}

Status extract_routers(Arguments& arguments) {
  TIERD_ASSIGN(const auto source, open_source(arguments.plan.model));
  return write_routers(*source, arguments.plan.out);
}

Status run_distill(Arguments& arguments) {
  DistillPlan& plan = arguments.distill.plan;
  if (arguments.distill.fake_quant == "q4_0") plan.distiller.fake_quant = FakeQuant::q4_0_rows;
  if (arguments.distill.fake_quant == "q4_0-channels") plan.distiller.fake_quant = FakeQuant::q4_0_columns;
  plan.distiller.teacher = arguments.distill.loss == "teacher";
  plan.distiller.straight_through = arguments.distill.mask_gradient == "straight-through";
  plan.distiller.cuda = arguments.distill.device == "cuda";
  TIERD_ASSIGN(const DistillReport report, distill(plan));
  return plan.quiet ? Status() : write_output(to_table(report, plan.distiller.sparsity));
}

void add_both(CommandLine& to, PredictorPlan& plan) {
  to.option("MODEL", plan.model, "A GGUF file, a Hugging Face folder or a llama2.c checkpoint")
      .required()
      .named("MODEL");
  to.option("-o,--output", plan.out, "The safetensors file to write").required().named("OUT");
  to.flag("-q,--quiet", plan.quiet, "No progress and no table");
}

void add_predictor(CommandLine& to, Arguments& arguments) {
  PredictorPlan& plan = arguments.plan;
  TrainOptions& training = plan.training;
  add_both(to, plan);
  to.option("ACTIVATIONS", plan.activations, "What tier-profile recorded of the model, a safetensors file")
      .required()
      .named("ACTIVATIONS");
  to.option("--rank", plan.rank, "Of all layers: 128, or d/4 of the width; or of each: 0-27=128,28-31=none")
      .named("RANK")
      .shows_default();
  to.option("--epochs", training.epochs, "How often every token is trained on; 0: the start alone")
      .named("N")
      .between(0, 1000)
      .shows_default();
  to.option("--batch", training.batch, "Tokens a step").named("N").between(1, 65536).shows_default();
  to.option("--learning-rate", training.learning_rate, "Of Adam, at the start; it falls to 0")
      .named("X")
      .between(1e-8, 10.0)
      .shows_default();
  to.option("--held-out", plan.held_out,
            "The last share of the tokens, which is judged by and not trained on")
      .named("SHARE")
      .between(0.001, 0.9)
      .shows_default();
  const Argument threshold = to.option("--threshold", arguments.threshold,
                                       "Judged at: predicted is what has sigmoid(score) above it")
                                 .named("P")
                                 .between(0.001, 0.999)
                                 .shows_default();
  to.flag("--sweep", arguments.sweep, "Judge at 0.3, 0.5 and 0.7").excludes(threshold);
  to.option("--seed", training.seed, "The same seed gives the same predictors").named("N").shows_default();
  to.option("--dtype", arguments.dtype, "f16 or f32, of the matrices; the bias is f32")
      .one_of({"f16", "f32"})
      .named("DTYPE")
      .shows_default();
  to.option("-t,--threads", training.threads, "Threads that compute (default: one a core)")
      .named("N")
      .between(1, 1024);
  to.option("--json", arguments.json, "The table for machines, with the counts behind it").named("FILE");
}

void add_judge(CommandLine& to, Arguments& arguments) {
  AheadPlan& plan = arguments.ahead;
  to.option("MODEL", plan.model, "A GGUF file, a Hugging Face folder or a llama2.c checkpoint")
      .required()
      .named("MODEL");
  to.option("ACTIVATIONS", plan.activations, "What tier-profile recorded, of a text that was not trained on")
      .required()
      .named("ACTIVATIONS");
  to.option("PREDICTORS", plan.predictors, "What tier-train predictor wrote of the model")
      .required()
      .named("PREDICTORS");
  to.option("-o,--output", arguments.judged,
            "Write the predictors once more, with what the highest-ranked neurons keep (SITE.kept), by which "
            "fit_memory of predictor low-rank drops the others")
      .named("OUT");
  to.option("--ahead", plan.farthest, "Neurons are predicted from 0 up to so many layers before theirs")
      .named("N")
      .between(0, 1000)
      .shows_default();
  to.option("--fetched", plan.fetched, "Share of a layer's neurons, those of the highest scores")
      .named("SHARE")
      .between(0.001, 1.0)
      .shows_default();
  to.option("--json", arguments.json, "The table for machines, with the counts behind it").named("FILE");
}

void add_distill(CommandLine& to, DistillArguments& arguments) {
  DistillPlan& plan = arguments.plan;
  DistillerOptions& options = plan.distiller;
  to.option("MODEL", plan.model, "A Hugging Face folder: the teacher, and what the student begins as")
      .required()
      .named("MODEL");
  to.option("TEXT", plan.text, "A text file to learn on, of the kind that the model is for")
      .required()
      .named("TEXT");
  to.option("--tokenizer", plan.tokenizer, "A tokenizer to use instead of the model's own").named("FILE");
  to.option("-o,--output", plan.out, "The folder to make, which tierd and transformers load")
      .required()
      .named("OUT");
  to.option(
        "--sparsity", options.sparsity,
        "Share of the inputs of every operator of the layers that is masked; one distillation serves others")
      .named("SHARE")
      .between(0.0, 0.99)
      .shows_default();
  to.option("--learning-rate", plan.learning_rate,
            "Of AdamW, at its highest. The larger the model the lower: 1e-6 for 8 billion parameters")
      .named("X")
      .between(1e-9, 1.0)
      .shows_default();
  to.option("--warmup", plan.warmup,
            "Share of the steps in which the rate rises; then it falls to 0 as a cosine")
      .named("SHARE")
      .between(0.0, 0.9)
      .shows_default();
  const Argument epochs = to.option("--epochs", plan.epochs, "How often every window of TEXT is trained on")
                              .named("N")
                              .between(1, 1000)
                              .shows_default();
  to.option("--steps", plan.steps, "So many steps instead").named("N").between(1, 1 << 30).excludes(epochs);
  to.option("--batch", plan.batch, "Windows a step").named("N").between(1, 65536).shows_default();
  to.option("--sequence", plan.sequence, "Tokens of a window; at most the model's context")
      .named("N")
      .between(2, 1 << 20)
      .shows_default();
  to.option("--held-out", plan.held_out, "The last share of TEXT, which is judged by and not trained on")
      .named("SHARE")
      .between(0.001, 0.9)
      .shows_default();
  to.option("--clip", options.clip, "The gradient's norm is at most this; 0: whatever it is")
      .named("X")
      .between(0.0, 1e6)
      .shows_default();
  to.option("--weight-decay", options.weight_decay, "Of AdamW").named("X").between(0.0, 1.0).shows_default();
  to.option(
        "--fake-quant", arguments.fake_quant,
        "Learn for weights in 4 bits: q4_0, in blocks along rows as in GGUF; q4_0-channels, along columns "
        "as layout channel-group encodes them. OUT is not quantized")
      .one_of({"none", "q4_0", "q4_0-channels"})
      .named("ENCODING")
      .shows_default();
  to.option("--loss", arguments.loss,
            "What the student learns: to say what the teacher says (teacher: KL divergence), or TEXT itself, "
            "without a "
            "teacher (text: cross-entropy)")
      .one_of({"teacher", "text"})
      .named("LOSS")
      .shows_default();
  to.option("--mask-gradient", arguments.mask_gradient,
            "Gradients of masked inputs: as if they were not masked (straight-through), or none (zero)")
      .one_of({"straight-through", "zero"})
      .named("GRADIENT")
      .shows_default();
  to.option("--seed", plan.seed, "Decides the order of the windows").named("N").shows_default();
  to.option("--device", arguments.device, "cpu or cuda")
      .one_of({"cpu", "cuda"})
      .named("DEVICE")
      .shows_default();
  to.option("-t,--threads", options.threads, "Threads that compute (default: one a core)")
      .named("N")
      .between(1, 1024);
  to.flag("-q,--quiet", plan.quiet, "No progress and no table");
}

int run(int argc, char** argv) {
  Arguments arguments;
  Status (*command)(Arguments&) = nullptr;
  CommandLine line("tier-train", kAbout);
  add_predictor(line.command("predictor", "train low-rank predictors on recorded activations",
                             [&] { command = train; }),
                arguments);
  add_judge(line.command("judge", "say how well layers know the neurons of those behind them",
                         [&] { command = judge; }),
            arguments);
  add_both(line.command("gate", "copy the gate projections of a model", [&] { command = extract; }),
           arguments.plan);
  add_both(
      line.command("router", "copy the routers of a mixture of experts", [&] { command = extract_routers; }),
      arguments.plan);
  add_distill(line.command("distill", "teach a model to bear masked inputs (predictor top-k)",
                           [&] { command = run_distill; }),
              arguments.distill);
  if (const auto status = line.parse(argc, argv)) return *status;
  const Status done = command(arguments);
  if (done.ok()) return 0;
  say("tier-train: " + done.error().line());
  return 2;
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  return tierd::run(argc, argv);
}
