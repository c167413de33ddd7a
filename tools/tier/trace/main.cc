// tier-trace: shows and replays traces.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/standard_streams.h"
#include "core/base/units.h"
#include "core/report/figure_json.h"
#include "core/run/run_trace.h"
#include "core/run/strategy_choices.h"
#include "core/watch/trace/replay.h"
#include "core/watch/trace/what_if.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/exit_code.h"
#include "tools/command_line/moved.h"
#include "tools/evaluation/alternatives.h"
#include "tools/evaluation/model_arguments.h"
#include "tools/tier/trace/play.h"
#include "tools/tier/trace/summary.h"
#include "tools/tier/trace/timeline.h"

namespace tierd {
namespace {

constexpr const char* kDescription =
    "tier-trace reads the trace that `tierd --trace FILE` has written.\n"
    "\n"
    "  tierd --config configs/hybrid.toml -m model.gguf -n 64 --trace run.trace\n"
    "  tier-trace summary run.trace\n"
    "  tier-trace print run.trace --steps 3-4\n"
    "  tier-trace export run.trace -o run.json        # open in ui.perfetto.dev\n"
    "  tier-trace replay run.trace                    # decides everything again, without weights\n"
    "  tier-trace what-if run.trace cache.name=lru cache.name=lfu,arena=25%\n"
    "  tier-trace play run.trace -m model.gguf --config configs/hybrid.toml --set run.machine=machine.toml\n"
    "\n"
    "Exit: 0 done; 1 a replay decided otherwise, or an output failed; 2 unusable arguments or trace.";

struct Options {
  std::string file;
  std::string output;
  std::string steps;
  std::vector<std::string> plugin_folders;
  std::vector<std::string> alternatives;
  bool json = false;
  ModelArguments model;
};

int fail(const Error& error) {
  say(error.line());
  const bool ours =
      error.code == Code::io_error || error.code == Code::internal || error.code == Code::plugin_fault;
  return ours ? kFailed : kBadInput;
}

int print(const std::string& text) {
  const Status written = write_output(text);
  return written.ok() ? 0 : fail(written.error());
}

template <HasFigures T>
std::string json_text(const T& figures) {
  return figures_json(figures).dump(2) + "\n";
}

// Parses "3" or "3-7"; empty: all steps.
Result<StepRange> parse_steps(const std::string& text) {
  StepRange range;
  if (text.empty()) return range;
  const char* end = text.data() + text.size();
  auto [at, status] = std::from_chars(text.data(), end, range.first);
  range.last = range.first;
  if (status == std::errc() && at != end && *at == '-') {
    const auto rest = std::from_chars(at + 1, end, range.last);
    at = rest.ptr;
    status = rest.ec;
  }
  if (status != std::errc() || at != end || range.last < range.first) {
    return Error{Code::invalid_argument, "--steps",
                 fmt::format("'{}' is no step (3) and no range (3-7)", text)};
  }
  return range;
}

Config plugin_config(const Options& options) {
  Config config;
  for (const std::string& folder : options.plugin_folders)
    config.plugin_path += (config.plugin_path.empty() ? "" : ":") + folder;
  return config;
}

int summary(TraceReader& trace, const Options& options) {
  const auto summary = trace_summary(trace);
  if (!summary.ok()) return fail(summary.error());
  return print(options.json ? json_text(*summary) : summary_text(*summary));
}

int print_events(TraceReader& trace, const Options& options) {
  const auto steps = parse_steps(options.steps);
  if (!steps.ok()) return fail(steps.error());
  std::string text;
  bool inside = options.steps.empty();  // events outside of steps belong to the step before them
  for (; const Event* event = trace.peek(); trace.next()) {
    if (const auto* pass = event->as<PassBegins>(); pass != nullptr && !options.steps.empty())
      inside = steps->contains(pass->step);
    if (!inside) continue;
    text += fmt::format("{:>12.3f} ms  {}\n", static_cast<double>(event->ns) * 1e-6,
                        event_text(*event, trace.header().sites));
    if (text.size() < (1u << 20)) continue;
    if (const int code = print(text); code != 0) return code;
    text.clear();
  }
  if (const int code = print(text); code != 0) return code;
  if (!trace.status().ok()) return fail(trace.status().error());
  return 0;
}

int export_timeline(TraceReader& trace, const Options& options) {
  const auto steps = parse_steps(options.steps);
  if (!steps.ok()) return fail(steps.error());
  const bool to_file = options.output != "-";
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file(to_file ? std::fopen(options.output.c_str(), "wb") : nullptr);
  if (to_file && !file) {
    return fail({Code::io_error, options.output, fmt::format("cannot be written: {}", std::strerror(errno))});
  }
  const Status written = write_timeline(trace, *steps, to_file ? file.get() : stdout, options.output);
  return written.ok() ? 0 : fail(written.error());
}

// The counts are of neurons, unless the name says otherwise.
struct CounterFigures {
  uint64_t hits = 0, staged = 0, misses = 0, evictions = 0, wasted = 0, read_bytes = 0;
  double hit_rate = 0;

  static constexpr auto figures() {
    using F = CounterFigures;
    return std::tuple(Figure{&F::hits, "hits", Quantity::count, Adds::latest, "resident when they were used"},
                      Figure{&F::staged, "staged", Quantity::count, Adds::latest, "read ahead"},
                      Figure{&F::misses, "misses", Quantity::count, Adds::latest, "read when they were used"},
                      Figure{&F::hit_rate, "hit_rate", Quantity::share, Adds::latest, "of the used ones"},
                      Figure{&F::evictions, "evictions", Quantity::count, Adds::latest, "by the cache"},
                      Figure{&F::wasted, "wasted", Quantity::count, Adds::latest, "read ahead and not used"},
                      Figure{&F::read_bytes, "read_bytes", Quantity::bytes, Adds::latest, "from the store"});
  }
};

CounterFigures counter_figures(const SchedulerCounters& c) {
  const uint64_t used = c.hits + c.staged + c.misses;
  return {.hits = c.hits,
          .staged = c.staged,
          .misses = c.misses,
          .evictions = c.evictions,
          .wasted = c.wasted,
          .read_bytes = c.read_bytes,
          .hit_rate = used == 0 ? 0.0 : static_cast<double>(c.hits) / static_cast<double>(used)};
}

struct ReplayFigures {
  uint64_t events = 0, steps = 0;
  bool interrupted = false, whole = true, same = true;
  CounterFigures counters;
  std::optional<std::string> difference;

  static constexpr auto figures() {
    using F = ReplayFigures;
    return std::tuple(
        Figure{&F::events, "events", Quantity::count, Adds::latest, "that were decided the same"},
        Figure{&F::steps, "steps", Quantity::count, Adds::latest, "of the run"},
        Figure{&F::interrupted, "interrupted", Quantity::flag, Adds::latest, "the recorded run was"},
        Figure{&F::whole, "whole", Quantity::flag, Adds::latest, "the file was not cut off"},
        Figure{&F::same, "same", Quantity::flag, Adds::latest, "nothing was decided otherwise"},
        Figure{&F::counters, "counters", Quantity::parts, Adds::latest, "of the replay"},
        Figure{&F::difference, "difference", Quantity::text, Adds::latest, "the first one"});
  }
};

std::string replay_text(const std::string& file, const ReplayResult& result) {
  if (result.difference) return fmt::format("{}: decided otherwise: {}\n", file, *result.difference);
  return fmt::format("{}: {} steps, {} events: decided the same, byte for byte{}{}\n", file, result.steps,
                     result.events, result.interrupted ? ", up to the interruption" : "",
                     result.whole ? "" : ", up to where the file was cut off");
}

int replay_trace(TraceReader& trace, const Options& options) {
  const auto result = replay(trace, strategies_on(plugin_path(plugin_config(options))));
  if (!result.ok()) return fail(result.error());
  const ReplayFigures figures{.events = result->events,
                              .steps = result->steps,
                              .interrupted = result->interrupted,
                              .whole = result->whole,
                              .same = !result->difference,
                              .counters = counter_figures(result->counters),
                              .difference = result->difference};
  const int code = print(options.json ? json_text(figures) : replay_text(options.file, *result));
  return code != 0 ? code : result->difference ? kFailed : 0;
}

struct WhatIfRow : CounterFigures {
  std::string name;
  uint64_t arena_bytes = 0, steps = 0, decode_steps = 0, filled_bytes = 0, messages = 0;
  double steps_per_second = 0;

  static constexpr auto figures() {
    using F = WhatIfRow;
    return std::tuple_cat(
        CounterFigures::figures(),
        std::tuple(
            Figure{&F::name, "name", Quantity::text, Adds::latest, "the changed keys"},
            Figure{&F::arena_bytes, "arena_bytes", Quantity::bytes, Adds::latest, "for neurons"},
            Figure{&F::steps, "steps", Quantity::count, Adds::latest, "played"},
            Figure{&F::decode_steps, "decode_steps", Quantity::count, Adds::latest, "used the caches"},
            Figure{&F::filled_bytes, "filled_bytes", Quantity::bytes, Adds::latest, "before the first step"},
            Figure{&F::messages, "messages", Quantity::count, Adds::latest, "of all steps"},
            Figure{&F::steps_per_second, "steps_per_second", Quantity::count, Adds::latest,
                   "of this program"}));
  }
};

struct WhatIfFigures {
  std::string file;
  std::vector<WhatIfRow> rows;

  static constexpr auto figures() {
    using F = WhatIfFigures;
    return std::tuple(Figure{&F::file, "file", Quantity::text, Adds::latest, "the trace"},
                      Figure{&F::rows, "rows", Quantity::parts, Adds::latest, "as recorded, and otherwise"});
  }
};

Result<WhatIfRow> what_if_row(const TraceHeader& header, const std::vector<Asked>& asked,
                              const Alternative& alternative, const PluginPath& path) {
  TraceHeader changed = header;
  changed.predictor = alternative.predictor;
  changed.quantizer = alternative.quantizer;
  changed.cache = alternative.cache;
  if (alternative.one_cache) changed.tier_caches.clear();
  changed.balancer = alternative.balancer;
  TIERD_ASSIGN(const auto choices, choose_recorded(changed, strategies_on(path)));
  TIERD_ASSIGN(const WhatIf result, what_if(header, asked, choices, alternative.arena_bytes));
  const double seconds = static_cast<double>(result.ns) * 1e-9;
  WhatIfRow row;
  static_cast<CounterFigures&>(row) = counter_figures(result.counters);
  row.name = alternative.name;
  row.arena_bytes = alternative.arena_bytes;
  row.steps = result.steps;
  row.decode_steps = result.decode_steps;
  row.filled_bytes = result.filled_bytes;
  row.messages = result.messages;
  row.steps_per_second = seconds == 0 ? 0.0 : static_cast<double>(result.steps) / seconds;
  return row;
}

std::string what_if_text(const std::vector<WhatIfRow>& rows) {
  const auto per = [](uint64_t all, uint64_t steps) {
    return static_cast<double>(all) / static_cast<double>(std::max<uint64_t>(1, steps));
  };
  std::string text = fmt::format("{:<32}{:>10}{:>13}{:>14}{:>13}{:>15}{:>10}\n", "decode steps", "hit rate",
                                 "read/step", "evicted/step", "wasted/step", "messages/step", "steps/s");
  for (const WhatIfRow& row : rows) {
    text += fmt::format("{:<32}{:>8.2f} %{:>13}{:>14.1f}{:>13.1f}{:>15.1f}{:>10.0f}\n", row.name,
                        100 * row.hit_rate, format_bytes(per(row.read_bytes, row.decode_steps)),
                        per(row.evictions, row.decode_steps), per(row.wasted, row.decode_steps),
                        per(row.messages, row.steps), row.steps_per_second);
  }
  return text;
}

int ask_what_if(TraceReader& trace, const Options& options) {
  const TraceHeader& header = trace.header();
  const auto alternatives = parse_alternatives(header, options.alternatives);
  if (!alternatives.ok()) return fail(alternatives.error());
  const auto asked = read_asked(trace);
  if (!asked.ok()) return fail(asked.error());
  const PluginPath path = plugin_path(plugin_config(options));
  WhatIfFigures figures{.file = options.file, .rows = {}};
  for (const Alternative& alternative : *alternatives) {
    auto row = what_if_row(header, *asked, alternative, path);
    if (!row.ok()) return fail(row.error());
    figures.rows.push_back(std::move(*row));
  }
  return print(options.json ? json_text(figures) : what_if_text(figures.rows));
}

int play_trace(TraceReader& trace, const Options& options) {
  auto config = options.model.config();
  if (!config.ok()) return fail(config.error());
  RuntimeOptions run;
  run.quiet = true;
  run.fit = options.model.fit();
  const auto played = play(trace, std::move(*config), run);
  if (!played.ok()) return fail(played.error());
  return print(options.json ? json_text(*played) : played_text(*played));
}

// Returns the command that replaces a former one of tier-trace; empty for other words.
std::vector<std::string> moved_command(std::vector<std::string> words) {
  constexpr std::pair<std::string_view, const char*> kMoved[] = {
      {"activity", "show"}, {"draw", "draw"}, {"routing", "routing"}, {"truth", "truth"}};
  for (const auto& [former, now] : kMoved) {
    if (words.empty() || words.front() != former) continue;
    words.front() = now;
    words.insert(words.begin(), {"tier", "activity"});
    return words;
  }
  return {};
}

int run(int argc, char** argv) {
  const std::vector<std::string> words = words_of(argc, argv);
  if (const auto command = moved_command(words); !command.empty())
    return refuse_moved("tier-trace", words.front(), command);
  Options options;
  int (*command)(TraceReader&, const Options&) = nullptr;
  CommandLine line("tier-trace", kDescription);
  const auto add = [&](const char* name, const char* help,
                       int (*function)(TraceReader&, const Options&)) -> CommandLine& {
    CommandLine& added = line.command(name, help, [&command, function] { command = function; });
    added.option("FILE", options.file, "the trace").required().named("FILE");
    return added;
  };
  const auto add_steps = [&](CommandLine& to) {
    to.option("--steps", options.steps, "only these: 3, or 3-7").named("A[-B]");
  };
  const auto add_json = [&](CommandLine& to) { to.flag("--json", options.json, "for machines"); };
  const auto add_plugins = [&](CommandLine& to) {
    to.option("--plugin-path", options.plugin_folders, "a folder with plugins; may be repeated").named("DIR");
  };
  const auto add_output = [&](CommandLine& to, const char* help) {
    to.option("-o,--output", options.output, help).required().named("FILE");
  };
  add_json(add("summary", "the run on one screen", summary));
  add_steps(add("print", "every event, one a line", print_events));
  CommandLine& timeline = add("export", "Chrome trace events, for ui.perfetto.dev", export_timeline);
  add_output(timeline, "the JSON file; - is standard output");
  add_steps(timeline);
  CommandLine& replaying = add("replay", "decide everything again, and compare", replay_trace);
  add_plugins(replaying);
  add_json(replaying);
  CommandLine& other = add("what-if", "show the decisions of other policies for this run", ask_what_if);
  other
      .option(
          "ALTERNATIVE", options.alternatives,
          "KEY=VALUE[,KEY=VALUE]: keys of predictor, quantizer, cache, balancer; arena=BYTES or arena=25%")
      .named("KEY=VALUE,…");
  add_plugins(other);
  add_json(other);
  CommandLine& playing = add("play", "how long its steps would take on a described machine", play_trace);
  options.model.declare(playing);
  add_json(playing);
  if (const auto status = line.parse(words)) return *status;
  auto trace = TraceReader::open(options.file);
  if (!trace.ok()) return fail(trace.error());
  return command(*trace, options);
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  return tierd::run(argc, argv);
}
