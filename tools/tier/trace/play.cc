#include "tools/tier/trace/play.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/units.h"
#include "core/watch/trace/recorded_activity.h"
#include "core/watch/trace/what_if.h"

namespace tierd {
namespace {

// Plays the steps of a recorded run one after the other, as an engine receives them.
class Steps {
 public:
  Steps(Engine& engine, const ModelPlan& model, RecordedActivity& activity)
      : engine_(engine), model_(model), activity_(activity) {}

  Status operator()(const FillBegins&) { return {}; }  // done when the model was loaded
  Status operator()(const PackedPass& pass) {
    const PassBegins& begins = activity_.begin(pass).begins;
    if (begins.site == 0) begin(begins);
    if (begins.site + 1 == model_.sites.size()) n_wanted_ = begins.rows;
    return {};
  }
  Status operator()(const StepEnds&) {
    if (rows_.empty()) return {};  // the step was given up before it began
    std::vector<uint32_t> wanted;
    for (size_t i = rows_.size() - std::min(n_wanted_, rows_.size()); i < rows_.size(); ++i)
      wanted.push_back(static_cast<uint32_t>(i));
    const auto logits = engine_.step(rows_, wanted, prefill_);
    rows_.clear();
    n_wanted_ = 0;
    return logits.ok() ? Status() : Status(logits.error());
  }
  Status operator()(const SequenceBegins& begins) {
    positions_[begins.sequence] = 0;
    return engine_.begin_sequence(begins.sequence, begins.label);
  }
  Status operator()(const SequenceEnds& ends) {
    engine_.end_sequence(ends.sequence);
    return {};
  }
  Status operator()(const RowsKept& rows) {
    positions_[last_sequence_] -= std::min(positions_[last_sequence_], rows.rows - rows.kept);
    engine_.rows_kept(rows.rows, rows.kept);
    return {};
  }
  Status operator()(const DrainBegins&) { return engine_.drain(); }

 private:
  // Sets tokens that lie in the neurons of the embedding that were used. A sequence that was continued from
  // an earlier one begins anew here.
  void begin(const PassBegins& begins) {
    const auto& embedding = std::get<Rows>(model_.any().sites.front().cut);
    rows_.clear();
    prefill_ = begins.bypass_caches;
    for (uint32_t i = 0; i < begins.rows; ++i) {
      const uint32_t neuron = begins.given && !begins.given->empty()
                                  ? (*begins.given)[std::min<size_t>(i, begins.given->size() - 1)]
                                  : 0;
      last_sequence_ = begins.sequences[i];
      uint32_t& position = positions_[last_sequence_];
      if (position == engine_.context()) position = 0;
      rows_.push_back({.token = neuron * embedding.rows,
                       .position = position++,
                       .sequence = static_cast<uint32_t>(last_sequence_)});
    }
  }

  Engine& engine_;
  const ModelPlan& model_;
  RecordedActivity& activity_;
  std::vector<RowInfo> rows_;
  size_t n_wanted_ = 0;
  bool prefill_ = false;
  std::map<uint64_t, uint32_t> positions_;  // the next position of each sequence
  uint64_t last_sequence_ = 0;
};

// The capacities that a recorded run needs.
struct Needs {
  uint32_t rows = 1;
  uint32_t logit_rows = 1;
  uint32_t sequences = 1;
};
Needs needs_of(const std::vector<Asked>& asked, const SiteTable& sites) {
  Needs needs;
  for (const Asked& what : asked) {
    const auto* pass = std::get_if<PackedPass>(&what);
    if (pass == nullptr) continue;
    const PassBegins begins = pass->unpack().begins;
    needs.rows = std::max<uint32_t>(needs.rows, begins.rows);
    if (begins.site + 1 == sites.size()) needs.logit_rows = std::max<uint32_t>(needs.logit_rows, begins.rows);
    for (const uint32_t sequence : begins.sequences)  // the largest number would overflow to 0
      needs.sequences = std::max(needs.sequences, std::max(sequence, sequence + 1));
  }
  return needs;
}

Status check_model(const SiteTable& recorded, const SiteTable& model, const std::string& origin) {
  const auto fail = [&](const std::string& what) {
    return Error{Code::invalid_argument, origin, "is of another model or layout: " + what};
  };
  if (recorded.size() != model.size())
    return fail(fmt::format("{} sites, this one has {}", recorded.size(), model.size()));
  for (SiteId s = 0; s < model.size(); ++s) {
    if (recorded[s].name == model[s].name && recorded[s].n == model[s].n) continue;
    return fail(fmt::format("{} with {} neurons, here it is {} with {}", recorded[s].name, recorded[s].n,
                            model[s].name, model[s].n));
  }
  return {};
}

PlayedTimes played_times(const StepTimes& times) {
  const double tokens = static_cast<double>(std::max<uint64_t>(times.tokens, 1));
  const double seconds = static_cast<double>(times.wall_ns) * 1e-9;
  return {.steps = times.steps,
          .tokens = times.tokens,
          .seconds = seconds,
          .tokens_per_second = seconds > 0 ? static_cast<double>(times.tokens) / seconds : 0,
          .compute_ms = static_cast<double>(times.compute_ns) * 1e-6 / tokens,
          .stall_ms = static_cast<double>(times.stall_ns) * 1e-6 / tokens,
          .wanted_bytes = static_cast<double>(times.read_bytes) / tokens};
}

std::string phase_text(std::string_view phase, const PlayedTimes& times) {
  if (times.steps == 0) return "";
  return fmt::format(
      "  {:<8} {:.4g} tokens/s, {} tokens; {:.3g} ms of compute and {:.3g} ms of stall "
      "a token, {} wanted of flash\n",
      phase, times.tokens_per_second, times.tokens, times.compute_ms, times.stall_ms,
      format_bytes(times.wanted_bytes));
}

}  // namespace

Result<PlayedFigures> play(TraceReader& trace, Config config, RuntimeOptions options) {
  TIERD_ASSIGN(const std::vector<Asked> asked, read_asked(trace));
  const SiteTable& recorded = trace.header().sites;
  const Needs needs = needs_of(asked, recorded);
  config.clock = "model";
  config.execute = "trace";
  config.trace = config.timeline = config.shuffle = "";
  config.measure_every = trace.header().scheduler.measure_every;
  config.ubatch = std::max(config.ubatch, needs.rows);
  config.sequences = std::max(config.sequences, needs.sequences);
  options.logit_rows = std::max(options.logit_rows, needs.logit_rows);
  RecordedActivity activity(recorded, trace.header().scheduler.topology);
  options.recording = &activity;
  TIERD_ASSIGN(RunPlan plan, plan_run(config, options));
  TIERD_TRY(check_model(recorded, plan.model.sites, trace.path()));
  if (needs.rows > plan.memory.model.max_rows) {
    return Error{Code::no_space, "tiers.dram.capacity",
                 fmt::format("leaves room for steps of {} rows, the trace has one of {}",
                             plan.memory.model.max_rows, needs.rows)};
  }
  TIERD_ASSIGN(const std::unique_ptr<Runtime> runtime, Runtime::create(std::move(plan), options));
  TIERD_TRY(runtime->load());
  Engine& engine = runtime->engine();
  Steps steps(engine, runtime->plan().model, activity);
  for (const Asked& what : asked) TIERD_TRY(std::visit(steps, what));
  TIERD_TRY(engine.drain());
  PlayedFigures played;
  played.trace = trace.path();
  played.machine = config.machine;
  played.prefill = played_times(engine.prefill_times());
  played.decode = played_times(engine.decode_times());
  return played;
}

std::string played_text(const PlayedFigures& played) {
  return fmt::format("{} in virtual time, by {}\n", played.trace, played.machine) +
         phase_text("prefill", played.prefill) + phase_text("decode", played.decode);
}

}  // namespace tierd
