// tier-profile: records the inputs of a model's feed-forward networks and which neurons fire; or how often
// each of them fires, or with which others; or the magnitudes of its operators' inputs; or searches for the
// shares of neurons in each edition.
#include <fmt/format.h>

#include <memory>

#include "core/base/log.h"
#include "core/base/progress.h"
#include "core/base/standard_streams.h"
#include "core/engine/session.h"
#include "core/run/prepare_run.h"
#include "core/run/runtime.h"
#include "tools/command_line/exit_code.h"
#include "tools/command_line/text_file.h"
#include "tools/evaluation/model_arguments.h"
#include "tools/evaluation/text_windows.h"
#include "tools/lab/profile/activation_file.h"
#include "tools/lab/profile/frequency_file.h"
#include "tools/lab/profile/parents_file.h"
#include "tools/lab/profile/ratio_report.h"
#include "tools/lab/profile/ratio_search.h"
#include "tools/lab/profile/threshold_file.h"

namespace tierd {
namespace {

constexpr const char* kAbout =
    "Passes a text through a model and records the inputs of its feed-forward networks and which of "
    "their\nneurons fire, for training with tier train predictor.\n\n  tier-profile -m model/ text.txt -o "
    "activations.safetensors --tokens 50000\n\nA token takes 2 (d_model + d_ff) bytes a layer. While "
    "recording, all neurons are computed, whatever the configuration's\npredictor is.\n\nWith --thresholds, "
    "records how large the inputs of every operator are, and which are often in the larger half,\nfor the "
    "predictor top-k and for tier convert --order.\n\n  tier-profile -m model/ text.txt -o "
    "thresholds.safetensors --tokens 50000 --thresholds\n\nWith --frequencies, records how often each neuron "
    "fires and how many bytes it takes, for tier partition.\n\n  tier-profile -m model/ text.txt -o "
    "frequencies.safetensors --frequencies\n\nWith --parents, records which two neurons of the network "
    "before fire with each, for the predictor state-table.\n\n  tier-profile -m model/ text.txt -o "
    "parents.safetensors --parents --tokens 5000\n\nWith --search-ratio BITS, finds the shares of neurons in "
    "each edition for a mean of BITS bits a value in the\nnetworks: the model generates with every mixture "
    "of editions, and the one with the least uncertainty is chosen\n(M2Cache, Algorithm 1). The result is "
    "written as tables of a configuration.\n\n  tier-profile -m store/ text.txt -o ratios.toml "
    "--search-ratio 8.4 --set predictor.name=low-rank \\\n      --set "
    "predictor.tensors=predictor.safetensors\n\nExit status: 0; 1 if a disk, an output or a plugin failed; 2 "
    "for unusable arguments or files, with one line on\nstandard error that says why.\n";

struct Options {
  ModelArguments model;
  std::string text;
  std::string output;
  TextRange range;
  bool thresholds = false;
  bool frequencies = false;
  bool parents = false;
  double bits = 0;  // 0: no search for a ratio
  double step = 0.125;
  uint32_t prompt = 32;
  bool sweep = false;
};

// Returns the file that observes the run and is finished after the last token. `model`: its shape_text.
Result<std::unique_ptr<ProfileFile>> make_file(const Options& options, const std::string& model,
                                               const SiteTable& sites, uint64_t tokens) {
  if (options.thresholds) return ThresholdFile::create(options.output, model, sites);
  if (options.frequencies) return FrequencyFile::create(options.output, model, sites);
  if (options.parents)
    return ParentsFile::create(options.output, model, sites, tokens, options.model.quiet());
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
    return Error{Code::not_found, store, "the model has no tokenizer; name one with --tokenizer"};
  const Layout layout = options.thresholds ? Layout::channel_group : Layout::neuron;
  if (manifest.layout != layout)
    return Error{Code::invalid_argument, store,
                 fmt::format("has layout {}; convert the model with --layout {}", name(manifest.layout),
                             name(layout))};
  if (manifest.config.channel_order) {
    return Error{Code::invalid_argument, store,
                 "has channels in the order of --order, but inputs are numbered by the model's order; "
                 "profile a store without --order"};
  }
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

// The bits of a value in each edition of the model's networks, and the names of the encodings.
struct Editions {
  std::vector<double> bits;
  std::vector<std::string> names;
};
Result<Editions> editions_of(const Store& store) {
  Editions editions;
  const auto add = [&](Encoding e) {
    editions.bits.push_back(8.0 * block_bytes(e) / block_values(e));
    editions.names.emplace_back(name(e));
  };
  const Manifest& manifest = store.manifest();
  for (const StoredSite& edition : manifest.editions) {
    if (edition.edition_of != manifest.editions.front().edition_of) break;
    if (editions.bits.empty()) add(manifest.sites[edition.edition_of].encodings.front());
    add(edition.encodings.front());
  }
  if (!editions.bits.empty()) return editions;
  return Error{Code::invalid_argument, store.directory(),
               "every neuron is stored in one encoding; convert the model with --editions q8_0,q4_0"};
}

Status search(const Options& options) {
  TIERD_ASSIGN(Config config, options.model.config());
  config.ubatch = 1;
  config.layout = "neuron";
  if (config.editions == "none") config.editions = "q8_0,q4_0";
  if (config.predictor.name == "dense") {
    return Error{Code::invalid_argument, "predictor.name",
                 "--search-ratio requires a predictor that ranks neurons, such as low-rank"};
  }
  config.quantizer = {"plain"};
  RuntimeOptions run;
  run.fit = options.model.fit();
  run.quiet = options.model.quiet();
  TIERD_ASSIGN(RunPlan plan, prepare_run(config, run));
  const std::string store = plan.store.directory();
  if (!plan.store.manifest().has_vocab)
    return Error{Code::not_found, store, "the model has no tokenizer; name one with --tokenizer"};
  TIERD_ASSIGN(const Editions editions, editions_of(plan.store));
  TIERD_ASSIGN(const auto tokenizer, make_tokenizer(plan.store.manifest().vocab, store));
  RatioSearch search;
  search.bits = editions.bits;
  search.prompt = options.prompt;
  search.sweeps = options.sweep;
  TIERD_ASSIGN(search.windows,
               read_text_windows(*tokenizer, options.text, options.range, plan.memory.model.context));
  const bool keeps = config.predictor.name == "low-rank";
  search.points = points_of_budget(editions.bits, options.bits, options.step, keeps);
  if (search.points.empty()) {
    return Error{Code::invalid_argument, "--search-ratio",
                 fmt::format("{} bits are too few for all neurons in {}, and the predictor leaves none out",
                             options.bits, editions.names.back())};
  }
  const auto make = [&](const EditionShares& shares) -> Result<std::unique_ptr<Runtime>> {
    Config mixed = config;
    apply(shares, mixed);
    RuntimeOptions quiet = run;
    quiet.quiet = true;  // its loading is a part of a point's progress
    TIERD_ASSIGN(RunPlan point, prepare_run(mixed, quiet));
    TIERD_ASSIGN(std::unique_ptr<Runtime> runtime, Runtime::create(std::move(point), quiet));
    TIERD_TRY(runtime->load());
    return runtime;
  };
  Progress progress("searching", search.points.size(), options.model.quiet(), "points");
  TIERD_ASSIGN(const std::vector<RatioScore> scores,
               search_ratio(search, make, [&](const RatioScore&) { progress.advance(1); }));
  progress.finish();
  const RatioScore& chosen = scores[surest(scores)];
  const std::string source = fmt::format("tier-profile --search-ratio {:g} --step {:g} on {}", options.bits,
                                         options.step, options.text);
  TIERD_TRY(write_text_file(options.output, ratio_toml(chosen, source, keeps)));
  return options.model.quiet() ? Status() : write_output(ratio_table(scores, editions.names));
}

int run(int argc, char** argv) {
  Options options;
  CommandLine line("tier-profile", kAbout);
  line.option("text", options.text, "a text file").required().named("TEXT");
  line.option("-o,--output", options.output, "the file to write").required().named("FILE");
  line.option("--tokens", options.range.tokens, "maximum number of tokens of the text; 0: all").named("N");
  line.option("--skip", options.range.skip, "number of tokens to leave out at the beginning of the text")
      .named("N");
  Argument thresholds = line.flag("--thresholds", options.thresholds,
                                  "write quantiles of the operators' inputs, for the predictor top-k");
  Argument frequencies = line.flag("--frequencies", options.frequencies,
                                   "write how often each neuron fires, for tier partition");
  frequencies.excludes(thresholds);
  Argument parents = line.flag("--parents", options.parents,
                               "write which neurons fire together, for the predictor state-table");
  parents.excludes(thresholds).excludes(frequencies);
  Argument bits =
      line.option("--search-ratio", options.bits, "mean number of bits of a value in the networks");
  bits.between(0.5, 64.0).named("BITS").excludes(frequencies).excludes(parents);
  line.option("--step", options.step, "step of a mixture's shares")
      .needs(bits)
      .between(0.005, 0.5)
      .named("SHARE");
  line.option("--prompt-tokens", options.prompt,
              "tokens of each window that are the prompt; the others are generated")
      .needs(bits)
      .named("N");
  line.flag("--sweep", options.sweep, "also measure the text's perplexity at every point").needs(bits);
  options.model.declare(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  const Status done = options.bits != 0 ? search(options) : profile(options);
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
