// tier-profile: records what the feed-forward networks of a model compute from, and which neurons fire; or
// how large the inputs of its operators are.
#include <fmt/format.h>

#include <memory>

#include "core/base/log.h"
#include "core/base/progress.h"
#include "core/base/standard_streams.h"
#include "core/engine/session.h"
#include "core/run/prepare_run.h"
#include "core/run/runtime.h"
#include "tools/command_line/exit_code.h"
#include "tools/evaluation/model_arguments.h"
#include "tools/evaluation/text_windows.h"
#include "tools/tier-profile/activation_file.h"
#include "tools/tier-profile/threshold_file.h"

namespace tierd {
namespace {

constexpr const char* kAbout =
    "Passes a text through a model and records what its feed-forward networks compute from and which of "
    "their\n"
    "neurons fire: what tier-train predictor learns from.\n"
    "\n"
    "  tier-profile -m model/ text.txt -o activations.safetensors --tokens 50000\n"
    "\n"
    "A token takes 2 (d_model + d_ff) bytes a layer. Nothing is left out while it is recorded, whatever "
    "predictor\n"
    "the configuration names.\n"
    "\n"
    "With --thresholds, how large the inputs of every operator are: what predictor top-k may be given.\n"
    "\n"
    "  tier-profile -m model/ text.txt -o thresholds.safetensors --tokens 50000 --thresholds\n"
    "\n"
    "Exit status: 0; 1 if a disk, an output or a plugin failed; 2 if something given cannot be used, with "
    "one line\n"
    "on standard error that says why.\n";

struct Options {
  ModelArguments model;
  std::string text;
  std::string output;
  TextRange range;
  bool thresholds = false;
};

// What listens, and is finished when all tokens have passed. `model`: its shape_text.
Result<std::unique_ptr<ProfileFile>> make_file(const Options& options, const std::string& model,
                                               const SiteTable& sites, uint64_t tokens) {
  if (options.thresholds) return ThresholdFile::create(options.output, model, sites);
  return ActivationFile::create(options.output, model, sites, tokens);
}

Status profile(const Options& options) {
  TIERD_ASSIGN(Config config, options.model.config());
  config.layout = options.thresholds ? "channel-group" : "neuron";
  config.predictor = {"dense"};
  config.measure_every = 1;
  RuntimeOptions run;
  run.fit = options.model.fit();
  run.quiet = options.model.quiet();
  TIERD_ASSIGN(RunPlan plan, prepare_run(config, run));
  const Manifest& manifest = plan.store.manifest();
  const std::string store = plan.store.directory();
  if (!manifest.has_vocab)
    return Error{Code::not_found, store, "the model brings no tokenizer; name one with --tokenizer"};
  const Layout layout = options.thresholds ? Layout::channel_group : Layout::neuron;
  if (manifest.layout != layout)
    return Error{
        Code::invalid_argument, store,
        fmt::format("is of layout {}: convert it with --layout {}", name(manifest.layout), name(layout))};
  TIERD_ASSIGN(const auto tokenizer, make_tokenizer(manifest.vocab, store));
  TIERD_ASSIGN(const auto windows,
               read_text_windows(*tokenizer, options.text, options.range, plan.memory.model.context));
  uint64_t tokens = 0;
  for (const auto& window : windows) tokens += window.size();

  const SiteTable sites = plan.model.sites;
  TIERD_ASSIGN(const std::unique_ptr<ProfileFile> file,
               make_file(options, shape_text(manifest.config), sites, tokens));
  run.observer = file.get();
  TIERD_ASSIGN(const std::unique_ptr<Runtime> runtime, Runtime::create(std::move(plan), run));
  TIERD_TRY(runtime->load());
  Progress progress("profiling", tokens, options.model.quiet(), "tokens");
  Session session(runtime->engine(), 0);
  for (const auto& window : windows) {
    session.clear();
    if (const auto logits = session.append(window); !logits.ok()) return logits.error();
    progress.advance(window.size());
  }
  TIERD_TRY(runtime->engine().drain());
  progress.finish();
  TIERD_TRY(file->finish());
  return options.model.quiet() ? Status() : write_output(file->report());
}

int run(int argc, char** argv) {
  Options options;
  CommandLine line("tier-profile", kAbout);
  line.option("text", options.text, "a text file").required().named("TEXT");
  line.option("-o,--output", options.output, "the safetensors file to write").required().named("FILE");
  line.option("--tokens", options.range.tokens, "at most so many tokens of the text; 0: all").named("N");
  line.option("--skip", options.range.skip, "leave out so many tokens at its beginning").named("N");
  line.flag("--thresholds", options.thresholds, "write quantiles of the operators' inputs, for top-k");
  options.model.declare(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  const Status done = profile(options);
  if (done.ok()) return 0;
  say("tier-profile: " + done.error().line());
  return exit_code(done.error());
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  return tierd::run(argc, argv);
}
