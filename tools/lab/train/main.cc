// tier-train: makes the tensors that predictors read from a model and its recorded activations.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/log.h"
#include "core/base/standard_streams.h"
#include "core/store/source.h"
#include "tools/command_line/command_line.h"
#include "tools/lab/train/judge_ahead.h"
#include "tools/lab/train/kept_mass.h"
#include "tools/lab/train/train_predictors.h"
#include "tools/lab/train/write_gates.h"
#include "tools/lab/train/write_routers.h"

namespace tierd {
namespace {

constexpr const char* kAbout =
    "Makes the tensors with which predictors find the active neurons of feed-forward\nnetworks.\n\n  "
    "tier-train predictor opt-6.7b opt.profile.safetensors -o opt.low-rank.safetensors \\\n    --rank "
    "0-27=128,28-31=1024\n  tier-train judge opt-6.7b opt.profile.safetensors opt.low-rank.safetensors "
    "--ahead 2\n  tier-train gate relu-llama -o gates.safetensors     # for the predictor gate, which is "
    "exact\n  tier-train router olmoe -o routers.safetensors      # for the predictor router, of "
    "mixtures\n\nExit status: 0; 2 if nothing could be made, with one line on standard error\nthat says why.";

struct Arguments {
  AheadRequest ahead;
  std::string judged;        // the copy of the predictors with the part that they keep; empty: none
  PredictorRequest request;  // `gate` and `router` use model, out and quiet
  std::string dtype = "f16";
  double threshold = 0.5;
  bool sweep = false;
  std::string json;
};

Status write_json(const std::string& path, nlohmann::json object, const std::string& model,
                  const std::string& activations, const std::string& predictor) {
  object.update({{"model", model}, {"activations", activations}, {"predictor", predictor}});
  std::ofstream file(path, std::ios::trunc);
  file << object.dump(2) << '\n';
  file.close();
  if (!file) return Error{Code::io_error, path, "cannot be written"};
  return {};
}

Status train(Arguments& arguments) {
  PredictorRequest& request = arguments.request;
  request.encoding = *by_name<Encoding>(arguments.dtype);
  request.thresholds = {arguments.threshold};
  if (arguments.sweep) request.thresholds = {0.3, 0.5, 0.7};
  TIERD_ASSIGN(const auto reports, train_predictors(request));
  if (!arguments.json.empty()) {
    TIERD_TRY(write_json(arguments.json, to_json(reports), request.model, request.activations, request.out));
  }
  return request.quiet ? Status() : write_output(to_table(reports));
}

Status judge(Arguments& arguments) {
  const AheadRequest& request = arguments.ahead;
  TIERD_ASSIGN(const auto reports, judge_ahead(request));
  if (!arguments.judged.empty())
    TIERD_TRY(write_kept_mass({request.model, request.activations, request.predictors, arguments.judged}));
  if (!arguments.json.empty()) {
    nlohmann::json object{{"fetched", request.fetched}, {"distances", to_json(reports)}};
    TIERD_TRY(write_json(arguments.json, std::move(object), request.model, request.activations,
                         request.predictors));
  }
  return write_output(to_table(reports));
}

Status extract(Arguments& arguments) {
  TIERD_ASSIGN(const auto source, open_source(arguments.request.model));
  return write_gates(*source, arguments.request.out, arguments.request.quiet);
}

Status extract_routers(Arguments& arguments) {
  TIERD_ASSIGN(const auto source, open_source(arguments.request.model));
  return write_routers(*source, arguments.request.out);
}

void add_both(CommandLine& to, PredictorRequest& request) {
  to.option("MODEL", request.model, "A GGUF file, a Hugging Face folder or a llama2.c checkpoint")
      .required()
      .named("MODEL");
  to.option("-o,--output", request.out, "The safetensors file to write").required().named("OUT");
  to.flag("-q,--quiet", request.quiet, "No progress and no table");
}

void add_predictor(CommandLine& to, Arguments& arguments) {
  PredictorRequest& request = arguments.request;
  TrainOptions& training = request.training;
  add_both(to, request);
  to.option("ACTIVATIONS", request.activations,
            "The safetensors file that tier profile recorded of the model")
      .required()
      .named("ACTIVATIONS");
  to.option("--rank", request.rank,
            "Rank of all layers: 128, or d/4 of the width; or of each: 0-27=128,28-31=none")
      .named("RANK")
      .shows_default();
  to.option("--epochs", training.epochs, "Number of passes over all tokens; 0: the initial values only")
      .named("N")
      .between(0, 1000)
      .shows_default();
  to.option("--batch", training.batch, "Number of tokens in a step")
      .named("N")
      .between(1, 65536)
      .shows_default();
  to.option("--learning-rate", training.learning_rate,
            "Learning rate of Adam at the start; it decreases to 0")
      .named("X")
      .between(1e-8, 10.0)
      .shows_default();
  to.option("--held-out", request.held_out,
            "Share of the tokens, the last ones, that are judged and not trained on")
      .named("SHARE")
      .between(0.001, 0.9)
      .shows_default();
  const Argument threshold =
      to.option("--threshold", arguments.threshold,
                "A neuron with sigmoid(score) above it counts as predicted in the table")
          .named("P")
          .between(0.001, 0.999)
          .shows_default();
  to.flag("--sweep", arguments.sweep, "Judge at 0.3, 0.5 and 0.7").excludes(threshold);
  to.option("--seed", training.seed, "The same seed gives the same predictors").named("N").shows_default();
  to.option("--dtype", arguments.dtype, "Number format of the matrices, f16 or f32; the bias is f32")
      .one_of({"f16", "f32"})
      .named("DTYPE")
      .shows_default();
  to.option("-t,--threads", training.threads, "Number of compute threads (default: one for each core)")
      .named("N")
      .between(1, 1024);
  to.option("--json", arguments.json, "Write the table as JSON, with its counts").named("FILE");
}

void add_judge(CommandLine& to, Arguments& arguments) {
  AheadRequest& request = arguments.ahead;
  to.option("MODEL", request.model, "A GGUF file, a Hugging Face folder or a llama2.c checkpoint")
      .required()
      .named("MODEL");
  to.option("ACTIVATIONS", request.activations,
            "The file that tier profile recorded of a text that was not trained on")
      .required()
      .named("ACTIVATIONS");
  to.option("PREDICTORS", request.predictors, "The file that tier train predictor wrote for the model")
      .required()
      .named("PREDICTORS");
  to.option("-o,--output", arguments.judged,
            "Copy the predictors to OUT, with the part of the result that the highest-ranked neurons keep "
            "(SITE.kept), by which fit_memory of predictor low-rank drops the others")
      .named("OUT");
  to.option("--ahead", request.farthest,
            "Maximum number of layers between the input and the predicted neurons")
      .named("N")
      .between(0, 1000)
      .shows_default();
  to.option("--fetched", request.fetched,
            "Share of a layer's neurons that are fetched, those with the highest scores")
      .named("SHARE")
      .between(0.001, 1.0)
      .shows_default();
  to.option("--json", arguments.json, "Write the table as JSON, with its counts").named("FILE");
}

int run(int argc, char** argv) {
  Arguments arguments;
  Status (*command)(Arguments&) = nullptr;
  CommandLine line("tier-train", kAbout);
  add_predictor(line.command("predictor", "train low-rank predictors on recorded activations",
                             [&] { command = train; }),
                arguments);
  add_judge(line.command("judge",
                         "count how many active neurons of later layers are predicted from a layer's input",
                         [&] { command = judge; }),
            arguments);
  add_both(line.command("gate", "copy the gate projections of a model", [&] { command = extract; }),
           arguments.request);
  add_both(
      line.command("router", "copy the routers of a mixture of experts", [&] { command = extract_routers; }),
      arguments.request);
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
