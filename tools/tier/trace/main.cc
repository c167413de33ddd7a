// tier-trace: shows and replays traces.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/standard_streams.h"
#include "core/base/units.h"
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

using nlohmann::json;

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
  const auto summary = summary_json(trace);
  if (!summary.ok()) return fail(summary.error());
  return print(options.json ? summary->dump(2) + "\n" : summary_text(*summary));
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

json counters_json(const SchedulerCounters& c) {
  const uint64_t used = c.hits + c.staged + c.misses;
  return {{"hits", c.hits},
          {"staged", c.staged},
          {"misses", c.misses},
          {"hit_rate", used == 0 ? 0.0 : static_cast<double>(c.hits) / static_cast<double>(used)},
          {"evictions", c.evictions},
          {"wasted", c.wasted},
          {"read_bytes", c.read_bytes}};
}

int replay_trace(TraceReader& trace, const Options& options) {
  const auto result = replay(trace, strategies_on(plugin_path(plugin_config(options))));
  if (!result.ok()) return fail(result.error());
  if (options.json) {
    json object = {{"events", result->events},           {"steps", result->steps},
                   {"interrupted", result->interrupted}, {"whole", result->whole},
                   {"same", !result->difference},        {"counters", counters_json(result->counters)}};
    if (result->difference) object["difference"] = *result->difference;
    const int code = print(object.dump(2) + "\n");
    return code != 0 ? code : result->difference ? kFailed : 0;
  }
  std::string text;
  if (result->difference) {
    text = fmt::format("{}: decided otherwise: {}\n", options.file, *result->difference);
  } else {
    text = fmt::format("{}: {} steps, {} events: decided the same, byte for byte{}{}\n", options.file,
                       result->steps, result->events, result->interrupted ? ", up to the interruption" : "",
                       result->whole ? "" : ", up to where the file was cut off");
  }
  const int code = print(text);
  return code != 0 ? code : result->difference ? kFailed : 0;
}

int ask_what_if(TraceReader& trace, const Options& options) {
  const TraceHeader& header = trace.header();
  const auto alternatives = parse_alternatives(header, options.alternatives);
  if (!alternatives.ok()) return fail(alternatives.error());
  const auto asked = read_asked(trace);
  if (!asked.ok()) return fail(asked.error());
  const PluginPath path = plugin_path(plugin_config(options));
  std::string text = fmt::format("{:<32}{:>10}{:>13}{:>14}{:>13}{:>15}{:>10}\n", "decode steps", "hit rate",
                                 "read/step", "evicted/step", "wasted/step", "messages/step", "steps/s");
  json rows = json::array();
  for (const Alternative& alternative : *alternatives) {
    TraceHeader changed = header;
    changed.predictor = alternative.predictor;
    changed.quantizer = alternative.quantizer;
    changed.cache = alternative.cache;
    if (alternative.one_cache) changed.tier_caches.clear();
    changed.balancer = alternative.balancer;
    const auto choices = choose_recorded(changed, strategies_on(path));
    if (!choices.ok()) return fail(choices.error());
    const auto result = what_if(header, *asked, *choices, alternative.arena_bytes);
    if (!result.ok()) return fail(result.error());
    const double seconds = static_cast<double>(result->ns) * 1e-9;
    json row = counters_json(result->counters);
    row["name"] = alternative.name;
    row["arena_bytes"] = alternative.arena_bytes;
    row["steps"] = result->steps;
    row["decode_steps"] = result->decode_steps;
    row["filled_bytes"] = result->filled_bytes;
    row["messages"] = result->messages;
    row["steps_per_second"] = seconds == 0 ? 0.0 : static_cast<double>(result->steps) / seconds;
    const double steps = static_cast<double>(std::max<uint64_t>(1, result->decode_steps));
    text += fmt::format(
        "{:<32}{:>8.2f} %{:>13}{:>14.1f}{:>13.1f}{:>15.1f}{:>10.0f}\n", alternative.name,
        100 * row["hit_rate"].get<double>(),
        format_bytes(static_cast<double>(result->counters.read_bytes) / steps),
        static_cast<double>(result->counters.evictions) / steps,
        static_cast<double>(result->counters.wasted) / steps,
        static_cast<double>(result->messages) / static_cast<double>(std::max<uint64_t>(1, result->steps)),
        row["steps_per_second"].get<double>());
    rows.push_back(std::move(row));
  }
  return print(options.json ? json{{"file", options.file}, {"rows", rows}}.dump(2) + "\n" : text);
}

int play_trace(TraceReader& trace, const Options& options) {
  auto config = options.model.config();
  if (!config.ok()) return fail(config.error());
  RuntimeOptions run;
  run.quiet = true;
  run.fit = options.model.fit();
  const auto played = play(trace, std::move(*config), run);
  if (!played.ok()) return fail(played.error());
  return print(options.json ? played->dump(2) + "\n" : played_text(*played));
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
