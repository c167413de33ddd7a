// tier-compare: measures the loss of a configuration on a text.
#include <fmt/format.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/progress.h"
#include "core/base/standard_streams.h"
#include "core/report/figure_json.h"
#include "core/run/loss_settings.h"
#include "core/run/prepare_run.h"
#include "core/run/runtime.h"
#include "core/run/runtime_names.h"
#include "core/run/strategy_choices.h"
#include "core/strategy/plugin_file.h"
#include "core/system/memory_limits.h"
#include "tools/command_line/exit_code.h"
#include "tools/evaluation/model_arguments.h"
#include "tools/evaluation/text_windows.h"
#include "tools/tier/compare/comparison.h"
#include "tools/tier/compare/kept_verdict.h"
#include "tools/tier/compare/reference_thread.h"
#include "tools/tier/compare/references.h"
#include "tools/tier/compare/report.h"

namespace tierd {
namespace {

constexpr const char* kAbout =
    "Says what a configuration loses on a text. Three runs of the model read it: the file as published, the "
    "store\n"
    "that the configuration makes of it with nothing left out, and the configuration itself. Prints "
    "perplexity,\n"
    "Kullback-Leibler divergence of the next token's distribution, the share of the weights that was used, "
    "and\n"
    "for each network whose neurons are predicted what was missed.\n"
    "\n"
    "Where the weights that a token uses depend on the tokens that are computed with it (cache-aware masks, "
    "ranked\n"
    "precisions, gates), the configuration reads one token a step, as decoding does.\n"
    "\n"
    "The verdict on a configuration that leaves something out is kept with the store, in losses/: tierd says "
    "it when\n"
    "it starts with the same settings and model, and refuses more than 0.1 nats a token without --force.\n"
    "\n"
    "  tier-compare --config configs/llm-in-a-flash.toml -m model/ text.txt --tokens 10000\n"
    "  tier-compare -m model.gguf text.txt             # what int8 activations cost\n"
    "\n"
    "Exit status: 0; 1 if a disk, an output or a plugin failed; 2 if something given cannot be used, with "
    "one line\n"
    "on standard error that says why.\n";

constexpr uint32_t kRowsAtOnce = 64;     // of a run whose rows may be computed together
constexpr uint32_t kMeasuredSteps = 16;  // of one token: each such step measures the missed neurons

struct Options {
  ModelArguments model;
  std::string text;
  TextRange range;
  std::string published;
  std::optional<uint32_t> step_tokens;
  bool json = false;
};

RuntimeOptions runtime_options(const Options& options, uint32_t step_tokens, bool measures_beside) {
  RuntimeOptions run;
  run.measures_beside = measures_beside;
  run.fit = options.model.fit();
  run.quiet = options.model.quiet();
  run.logit_rows = step_tokens;
  return run;
}

Result<std::unique_ptr<Runtime>> make_run(const Config& config, const Options& options,
                                          uint32_t step_tokens) {
  const RuntimeOptions run = runtime_options(options, step_tokens, false);
  TIERD_ASSIGN(RunPlan plan, prepare_run(config, run));
  return Runtime::create(std::move(plan), run);
}

// Returns the bytes of a run's budgets that may not be committed yet: pages are at their first use.
uint64_t unfilled(const Runtime& run, bool loaded) {
  uint64_t bytes = 0;
  for (size_t tier = 0; tier < run.plan().tiers.memories.size(); ++tier) {
    if (run.plan().tiers.memories[tier].apart()) continue;
    bytes += run.budget(tier).capacity();
    for (const Budget::Line& line : run.budget(tier).lines())
      bytes -= loaded && line.name == kResident ? line.bytes : 0;
  }
  return bytes;
}

// Checks that the run fits beside the loaded ones: each was planned with memory that was free at that time.
Status expect_room(const Runtime& run, std::initializer_list<const Runtime*> loaded) {
  uint64_t bytes = unfilled(run, false);
  for (const Runtime* other : loaded) bytes += unfilled(*other, true);
  return expect_memory(bytes, "the run that is judged and its references");
}

// The run that is compared. With one token a step it has the memory that tierd would give it; memory for
// measurements of the report is outside of it.
struct Subject {
  std::unique_ptr<Runtime> run;
  std::optional<LossSettings> settings;  // none: the configuration is not lossy
  uint32_t step_tokens = 1;
  bool rows_apart = true;
};

// `as_asked`: the user's measure_every. Another value measures only for the report.
Result<Subject> start_subject(const Config& config, uint32_t as_asked, const Options& options,
                              uint32_t step_tokens) {
  const RuntimeOptions run = runtime_options(options, step_tokens, config.measure_every != as_asked);
  TIERD_ASSIGN(RunPlan plan, prepare_run(config, run));
  Subject subject;
  subject.step_tokens = step_tokens;
  if (is_lossy(plan)) {
    TIERD_ASSIGN(subject.settings, loss_settings(plan, as_asked));
  }
  TIERD_ASSIGN(subject.run, Runtime::create(std::move(plan), run));
  TIERD_ASSIGN(subject.rows_apart, subject.run->rows_apart());
  return subject;
}

// Returns whether measuring keeps the result: a predictor that learns from fired neurons would learn from
// measured passes, and lose less than without them.
Result<bool> may_be_measured(const Config& config) {
  if (config.measure_every != 0) return false;
  TIERD_ASSIGN(const ChosenStrategy predictor,
               choose_strategy(plugin_path(config), "predictor", StrategyConfig{config.predictor.name}));
  return !offers_heat(*predictor.choice.plugin);
}

Result<Subject> make_subject(Config config, const Options& options) {
  const uint32_t as_asked = config.measure_every;
  TIERD_ASSIGN(const bool measures, may_be_measured(config));
  if (options.step_tokens.value_or(1) == 1) {
    if (measures) config.measure_every = kMeasuredSteps;
    TIERD_ASSIGN(Subject subject, start_subject(config, as_asked, options, 1));
    if (!subject.rows_apart || options.step_tokens) return subject;
  }
  if (measures) config.measure_every = 1;
  return start_subject(config, as_asked, options, options.step_tokens.value_or(kRowsAtOnce));
}

Result<std::vector<std::vector<uint32_t>>> read_windows(const Options& options, const RunPlan& plan) {
  const Manifest& manifest = plan.store.manifest();
  if (!manifest.has_vocab) {
    return Error{Code::not_found, plan.store.directory(),
                 "the model brings no tokenizer; name one with --tokenizer"};
  }
  TIERD_ASSIGN(const auto tokenizer, make_tokenizer(manifest.vocab, plan.store.directory()));
  return read_text_windows(*tokenizer, options.text, options.range, plan.memory.model.context);
}

Result<std::unique_ptr<Runtime>> start_store(const Config& subject_config, const Options& options,
                                             const Runtime& subject) {
  TIERD_ASSIGN(std::unique_ptr<Runtime> run, make_run(store_reference(subject_config), options, kRowsAtOnce));
  TIERD_TRY(expect_room(*run, {&subject}));
  TIERD_TRY(run->load());
  return run;
}

Result<std::unique_ptr<Runtime>> start_published(const Published& published, const Options& options,
                                                 const Runtime& subject, const Runtime& store) {
  if (!published.config) return std::unique_ptr<Runtime>();
  TIERD_ASSIGN(std::unique_ptr<Runtime> run, make_run(*published.config, options, kRowsAtOnce));
  const uint32_t vocab = run->plan().store.manifest().config.vocab_size;
  const uint32_t expected = subject.plan().store.manifest().config.vocab_size;
  if (vocab != expected) {
    return Error{Code::invalid_argument, published.config->model,
                 fmt::format("has {} tokens, and the model that is judged has {}: it was published from "
                             "another file, which --published names",
                             vocab, expected)};
  }
  TIERD_TRY(expect_room(*run, {&subject, &store}));
  TIERD_TRY(run->load());
  return run;
}

Status compare(const Options& options) {
  TIERD_ASSIGN(Config config, options.model.config());
  if (config.execute == "trace") {
    return Error{Code::invalid_argument, "run.execute",
                 "\"trace\" computes nothing, so that there is nothing to compare; expected \"real\""};
  }
  // The thread starts before the subject binds the main thread, whose cores it would inherit.
  ReferenceThread thread;
  // The subject allocates its memory first: the references are planned with the rest.
  TIERD_ASSIGN(const Subject subject, make_subject(config, options));
  TIERD_TRY(subject.run->load());
  const RunPlan& plan = subject.run->plan();
  TIERD_ASSIGN(const auto windows, read_windows(options, plan));
  config.context = plan.memory.model.context;
  TIERD_ASSIGN(const std::unique_ptr<Runtime> store,
               thread.run([&] { return start_store(config, options, *subject.run); }).get());
  const Published published = published_reference(config, plan, options.published);
  TIERD_ASSIGN(const std::unique_ptr<Runtime> file,
               thread.run([&] { return start_published(published, options, *subject.run, *store); }).get());

  Contest contest{.subject = {&subject.run->engine(), subject.step_tokens},
                  .store = {&store->engine(), kRowsAtOnce},
                  .published = std::nullopt};
  if (file) contest.published = Contestant{&file->engine(), kRowsAtOnce};
  uint64_t tokens = 0;
  for (const auto& window : windows) tokens += window.size() - 1;
  Progress progress("comparing", tokens, options.model.quiet(), "tokens");
  TIERD_ASSIGN(const Verdict verdict,
               compare_on(contest, thread, windows, [&](uint64_t done) { progress.advance(done); }));
  TIERD_TRY(subject.run->engine().drain());
  TIERD_TRY(subject.run->end_recording());
  progress.finish();
  TIERD_ASSIGN(const KeptVerdict kept,
               keep_verdict(*subject.run, subject.settings, verdict,
                            {.text = options.text,
                             .against_store = !file && !keeps_values(plan.store.manifest()),
                             .as_decoding = subject.rows_apart || subject.step_tokens == 1}));
  const ComparisonFigures comparison = comparison_figures(*subject.run, verdict,
                                                          {.step_tokens = subject.step_tokens,
                                                           .published = file ? published.config->model : "",
                                                           .why_without_published = published.why,
                                                           .kept = kept});
  return write_output(options.json ? figures_json(comparison).dump(2) + "\n" : comparison_text(comparison));
}

int run(int argc, char** argv) {
  Options options;
  CommandLine line("tier-compare", kAbout);
  line.option("text", options.text, "a text file").required().named("TEXT");
  line.option("--tokens", options.range.tokens, "at most so many tokens of the text; 0: all").named("N");
  line.option("--skip", options.range.skip, "leave out so many tokens at its beginning").named("N");
  line.option("--step-tokens", options.step_tokens,
              "tokens that the configuration reads in a step; default: 1 where they depend on each other, "
              "else 64")
      .named("N");
  line.option("--published", options.published,
              "the model as published, where -m is a store or another encoding of it; none: do not run it")
      .named("MODEL");
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
