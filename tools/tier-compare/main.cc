// tier-compare: what a configuration loses on a text.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/log.h"
#include "core/base/progress.h"
#include "core/base/standard_streams.h"
#include "core/run/prepare_run.h"
#include "core/run/runtime.h"
#include "tools/command_line/exit_code.h"
#include "tools/evaluation/model_arguments.h"
#include "tools/evaluation/text_windows.h"
#include "tools/tier-compare/comparison.h"
#include "tools/tier-compare/report.h"

namespace tierd {
namespace {

constexpr const char* kAbout =
    "Passes a text through a model twice: as the configuration says, and with nothing left out (predictor "
    "dense,\n"
    "activations f32, all in memory). Prints what is lost: perplexity of both, Kullback-Leibler divergence "
    "of the\n"
    "next token's distribution, and for each network whose neurons are predicted what was missed.\n"
    "\n"
    "  tier-compare --config configs/llm-in-a-flash.toml -m model/ text.txt --tokens 10000\n"
    "  tier-compare -m model.gguf text.txt             # what int8 activations cost\n"
    "\n"
    "Exit status: 0; 1 if a disk, an output or a plugin failed; 2 if something given cannot be used, with "
    "one line\n"
    "on standard error that says why.\n";

constexpr uint32_t kRowsAtOnce = 64;  // whose logits are kept

struct Options {
  ModelArguments model;
  std::string text;
  TextRange range;
  bool json = false;
};

Result<std::unique_ptr<Runtime>> start(RunPlan plan, const RuntimeOptions& options) {
  TIERD_ASSIGN(std::unique_ptr<Runtime> runtime, Runtime::create(std::move(plan), options));
  TIERD_TRY(runtime->load());
  return runtime;
}

// The same model, with nothing left out.
Config reference_of(Config config) {
  config.predictor = {"dense"};
  config.quantizer = {"plain"};
  config.cache = {"pinned"};
  config.activations = "f32";
  config.tiers = Config().tiers;
  config.measure_every = 0;
  config.trace.clear();
  config.timeline.clear();
  return config;
}

Status compare(const Options& options) {
  TIERD_ASSIGN(Config config, options.model.config());
  if (config.measure_every == 0) config.measure_every = 1;
  RuntimeOptions run;
  run.fit = options.model.fit();
  run.quiet = options.model.quiet();
  run.logit_rows = kRowsAtOnce;
  TIERD_ASSIGN(RunPlan plan, prepare_run(config, run));
  const Manifest& manifest = plan.store.manifest();
  if (!manifest.has_vocab) {
    return Error{Code::not_found, plan.store.directory(),
                 "the model brings no tokenizer; name one with --tokenizer"};
  }
  TIERD_ASSIGN(const auto tokenizer, make_tokenizer(manifest.vocab, plan.store.directory()));
  TIERD_ASSIGN(const auto windows,
               read_text_windows(*tokenizer, options.text, options.range, plan.memory.model.context));
  uint64_t tokens = 0;
  for (const auto& window : windows) tokens += window.size() - 1;
  TIERD_ASSIGN(RunPlan dense, prepare_run(reference_of(config), run));
  TIERD_ASSIGN(const std::unique_ptr<Runtime> reference, start(std::move(dense), run));
  TIERD_ASSIGN(const std::unique_ptr<Runtime> subject, start(std::move(plan), run));
  Progress progress("comparing", tokens, options.model.quiet(), "tokens");
  TIERD_ASSIGN(const Loss loss, compare_on(reference->engine(), subject->engine(), windows,
                                           [&](uint64_t done) { progress.advance(done); }));
  TIERD_TRY(reference->engine().drain());
  TIERD_TRY(subject->engine().drain());
  TIERD_TRY(subject->end_recording());
  progress.finish();
  const nlohmann::json comparison = comparison_json(*subject, loss);
  return write_output(options.json ? comparison.dump(2) + "\n" : comparison_text(comparison));
}

int run(int argc, char** argv) {
  Options options;
  CommandLine line("tier-compare", kAbout);
  line.option("text", options.text, "a text file").required().named("TEXT");
  line.option("--tokens", options.range.tokens, "at most so many tokens of the text; 0: all").named("N");
  line.option("--skip", options.range.skip, "leave out so many tokens at its beginning").named("N");
  line.flag("--json", options.json, "print JSON");
  options.model.declare(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  const Status done = compare(options);
  if (done.ok()) return 0;
  say("tier-compare: " + done.error().line());
  return exit_code(done.error());
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  return tierd::run(argc, argv);
}
