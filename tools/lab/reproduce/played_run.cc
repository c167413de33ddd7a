#include "tools/lab/reproduce/played_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "core/model/shape_file.h"
#include "core/run/runtime.h"
#include "tools/lab/activity/drawn_activity.h"
#include "tools/lab/reproduce/drawn_partition.h"
#include "tools/lab/reproduce/network_time.h"

namespace tierd {
namespace {

constexpr uint32_t kTokensApart = 101;  // so that the tokens' rows are spread over the embedding
constexpr double kMs = 1e-6;            // ms of a ns
constexpr double kGb = 1e-9;            // GB of a byte

std::string file_in(const std::filesystem::path& folder, const std::string& name) {
  return name.ends_with(".toml") ? name : (folder / (name + ".toml")).string();
}

// A temporary file that is removed when the run is ready.
class PassingFile {
 public:
  PassingFile()
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("tier-reproduce-{}.safetensors", ::getpid())) {}
  ~PassingFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  PassingFile(const PassingFile&) = delete;
  PassingFile& operator=(const PassingFile&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// `further`: settings beside those of the run.
Result<Config> config_of(const DescribedRun& run, std::initializer_list<std::string> further = {}) {
  const uint64_t context = uint64_t{run.prompt} + run.warming + run.tokens;
  std::vector<std::string> overrides = {
      "model.path=" + file_in(shapes_folder(), run.model),
      "run.clock=model",
      "run.execute=trace",
      "run.machine=" + run.machine,
      fmt::format("run.sequences={}", run.sequences),
      fmt::format("run.context={}", context),
  };
  overrides.insert(overrides.end(), run.settings.begin(), run.settings.end());
  overrides.insert(overrides.end(), further.begin(), further.end());
  TIERD_ASSIGN(Config config,
               load_config(file_in(shapes_folder().parent_path(), run.configuration), overrides));
  // Drawn sets replace the predictor, which then needs no tensors and does not look ahead.
  if (!run.activity.empty() && run.drawn == Drawn::sets)
    config.predictor = {.name = "dense", .settings = {{"sites_ahead", int64_t{0}, "activity"}}};
  return config;
}

// Steps of all sequences, each one token further.
class Steps {
 public:
  Steps(Runtime& runtime, uint32_t sequences) : engine_(runtime.engine()), sequences_(sequences) {}

  Status begin() {
    for (uint32_t s = 0; s < sequences_; ++s) TIERD_TRY(engine_.begin_sequence(s));
    return {};
  }
  Status prompts(uint32_t tokens) {
    for (uint32_t s = 0; s < sequences_; ++s) {
      for (uint32_t at = 0; at < tokens;) {
        const uint32_t rows = std::min(tokens - at, engine_.max_rows());
        for (uint32_t i = 0; i < rows; ++i, ++at) add(s, at);
        TIERD_TRY(step({&kFirst, 1}, true));
      }
    }
    position_ = tokens;
    return {};
  }
  Status decode(uint32_t tokens) {
    std::vector<uint32_t> wanted;
    for (uint32_t s = 0; s < sequences_; ++s) wanted.push_back(s);
    for (uint32_t t = 0; t < tokens; ++t, ++position_) {
      for (uint32_t s = 0; s < sequences_; ++s) add(s, position_);
      TIERD_TRY(step(wanted, false));
    }
    return {};
  }
  Status end() {
    TIERD_TRY(engine_.drain());
    for (uint32_t s = 0; s < sequences_; ++s) engine_.end_sequence(s);
    return engine_.take_fault();
  }

 private:
  static constexpr uint32_t kFirst = 0;  // the row whose logits are requested when none are needed

  void add(uint32_t sequence, uint32_t position) {
    const uint64_t token = (uint64_t{position} * sequences_ + sequence) * kTokensApart;
    rows_.push_back({.token = static_cast<uint32_t>(token % engine_.vocab_size()),
                     .position = position,
                     .sequence = sequence});
  }
  Status step(std::span<const uint32_t> wanted, bool prefill) {
    const auto logits = engine_.step(rows_, wanted, prefill);
    rows_.clear();
    return logits.ok() ? Status() : Status(logits.error());
  }

  Engine& engine_;
  uint32_t sequences_;
  uint32_t position_ = 0;
  std::vector<RowInfo> rows_;
};

// The cumulative counters at a moment.
struct Counts {
  std::vector<TierLink> links;
  uint64_t used = 0;  // neurons of sites that are used in part
  uint64_t fetched = 0;
  uint64_t foreseen = 0;
  uint64_t right = 0;  // of the foreseen ones
};
Counts counts_of(const Runtime& runtime) {
  Counts counts{.links = runtime.links()};
  const std::vector<SiteUse>& use = runtime.scheduler().use();
  for (SiteId site = 0; site < use.size(); ++site) {
    if (is_cut_into<Rows>(runtime.plan().model.any().sites[site].cut)) continue;
    counts.used += use[site].hits + use[site].staged + use[site].misses;
    counts.fetched += use[site].staged + use[site].misses;
    counts.foreseen += use[site].foreseen;
    counts.right += use[site].right;
  }
  return counts;
}

void add_stored(const Runtime& runtime, PlayedRunFigures& played, Figures& figures) {
  const Manifest& manifest = runtime.plan().store.manifest();
  const auto all = static_cast<double>(manifest.tensor_bytes);
  double networks = 0;
  for (const StoredSite* site : manifest.stored()) {
    networks += is_network(site->group) ? static_cast<double>(site->tensor_bytes()) : 0;
  }
  played.store_gb = all * kGb;
  played.network_gb = networks * kGb;
  played.network_percent = 100 * networks / all;
  const std::vector<Edition>& editions = runtime.plan().model.sites.editions;
  for (MemoryId memory = 1; memory <= runtime.residencies().size(); ++memory) {
    const Residency& residency = runtime.residencies()[memory - 1u];
    double bytes = 0;
    for (EditionId e = 0; e < editions.size(); ++e) {
      for (uint32_t i = 0; i < editions[e].n; ++i)
        bytes += residency.valid(e, i) ? static_cast<double>(editions[e].bytes[i]) : 0;
    }
    const std::string& tier = runtime.plan().tiers.tier_of(memory).config.name;
    figures[tier + "_gb"] += bytes * kGb;
    figures[tier + "_percent"] += 100 * bytes / all;
  }
}

void add_counted(const Counts& before, const Counts& after, double steps, PlayedRunFigures& played,
                 Figures& figures) {
  for (size_t l = 0; l < after.links.size(); ++l) {
    const LinkCounters& now = after.links[l].counters;
    const LinkCounters& then = before.links[l].counters;
    const std::string name = after.links[l].from + ">" + after.links[l].to;
    figures[name + "_ms"] = static_cast<double>(now.busy_ns - then.busy_ns) * kMs / steps;
    figures[name + "_gb"] = static_cast<double>(now.bytes - then.bytes) * kGb / steps;
  }
  const auto percent = [&](uint64_t Counts::*part, uint64_t Counts::*whole) -> std::optional<double> {
    const auto of = static_cast<double>(after.*whole - before.*whole);
    if (of == 0) return std::nullopt;
    return 100 * static_cast<double>(after.*part - before.*part) / of;
  };
  played.loaded_percent = percent(&Counts::fetched, &Counts::used);
  played.foreseen_percent = percent(&Counts::right, &Counts::foreseen);
}

// Adds the figures that have a value, by their names.
void add_named(const PlayedRunFigures& played, Figures& figures) {
  for_each_figure<PlayedRunFigures>([&](const auto& figure) {
    const std::optional<double> value = played.*figure.member;
    if (value) figures.emplace(figure.name, *value);
  });
}

// A runtime, and the activity that it plays.
struct Played {
  std::unique_ptr<Recording> activity;  // NULL: predictors decide
  std::unique_ptr<Runtime> runtime;
};

Result<std::unique_ptr<Recording>> activity_of(const DescribedRun& run, RunPlan& plan) {
  if (run.activity.empty()) return std::unique_ptr<Recording>();
  // The drawn activity decides which neurons fire, whatever the activation function.
  for (Site& site : plan.model.sites.all) site.never_silent = false;
  return draw_activity(run.activity, run.drawn, plan.model, plan.config.sequences, plan.config.seed);
}

// Makes a runtime with its weights loaded before the first token.
Result<Played> runtime_of(const DescribedRun& run, KernelObserver& observer) {
  TIERD_ASSIGN(const Config config, config_of(run));
  RuntimeOptions options;
  options.quiet = true;
  options.force = true;  // a played run allocates no memory for weights
  options.logit_rows = run.sequences;
  options.observer = &observer;
  TIERD_ASSIGN(RunPlan plan, plan_run(config, options));
  const PassingFile partition;
  if (run.partition != 0) {
    TIERD_TRY(write_drawn_partition(plan, run.activity, run.partition, partition.path()));
    TIERD_ASSIGN(const Config divided, config_of(run, {"balancer.tensors=" + partition.path(),
                                                       "tiers.gpu.cache.tensors=" + partition.path()}));
    TIERD_ASSIGN(plan, plan_run(divided, options));
  }
  Played played;
  TIERD_ASSIGN(played.activity, activity_of(run, plan));
  options.recording = played.activity.get();
  TIERD_ASSIGN(played.runtime, Runtime::create(std::move(plan), options));
  TIERD_TRY(played.runtime->load());
  return played;
}

Result<Figures> figures_of(const DescribedRun& run) {
  NetworkTime network;
  TIERD_ASSIGN(const Played played, runtime_of(run, network));
  const std::unique_ptr<Runtime>& runtime = played.runtime;
  Engine& engine = runtime->engine();
  PlayedRunFigures of_run;
  Figures figures;
  Steps steps(*runtime, run.sequences);
  TIERD_TRY(steps.begin());
  TIERD_TRY(steps.prompts(run.prompt));
  TIERD_TRY(steps.decode(run.warming));
  of_run.prompt_ms = static_cast<double>(engine.prefill_times().wall_ns) * kMs;
  engine.reset_times();
  network.begin(runtime->plan().model);
  const Counts before = counts_of(*runtime);
  TIERD_TRY(steps.decode(run.tokens));
  const StepTimes times = engine.decode_times();
  const auto counted = static_cast<double>(times.steps);
  of_run.step_ms = static_cast<double>(times.wall_ns) * kMs / counted;
  of_run.tokens_per_second = 1e3 * run.sequences / of_run.step_ms;
  if (run.text != 0) {
    const double text_ms = run.text * of_run.step_ms;
    of_run.prompt_percent = 100 * of_run.prompt_ms / (of_run.prompt_ms + text_ms);
    of_run.text_tokens_per_second = 1e3 * run.sequences * run.text / (of_run.prompt_ms + text_ms);
  }
  of_run.compute_ms = static_cast<double>(times.compute_ns) * kMs / counted;
  of_run.network_ms = static_cast<double>(network.ns()) * kMs / counted;
  add_counted(before, counts_of(*runtime), counted, of_run, figures);
  add_stored(*runtime, of_run, figures);
  add_named(of_run, figures);
  for (const TierLink& link : runtime->links()) {
    figures[link.to + "_used_percent"] += 100 * figures[link.from + ">" + link.to + "_gb"] / of_run.store_gb;
  }
  for (const Tier& tier : runtime->plan().tiers.memories) {
    figures[tier.config.name + "_used_percent"] += figures[tier.config.name + "_percent"];
    for (const auto& [metric, value] : runtime->strategies().cache_of(tier.first_memory).metrics())
      figures[tier.config.name + "_" + metric] = value;
  }
  TIERD_TRY(steps.end());
  return figures;
}

}  // namespace

Result<Figures> play_run(const DescribedRun& run) {
  auto figures = figures_of(run);
  if (figures.ok()) return figures;
  Error error = figures.error();
  error.detail = error.line();
  error.origin = "runs." + run.name;
  return error;
}

}  // namespace tierd
