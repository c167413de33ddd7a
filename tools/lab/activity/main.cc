// tier-activity: draws which neurons are active, and shows what traces and routings recorded of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "core/base/standard_streams.h"
#include "core/report/figure_json.h"
#include "core/run/run_trace.h"
#include "core/run/strategy_choices.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/exit_code.h"
#include "tools/lab/activity/activity.h"
#include "tools/lab/activity/draw.h"
#include "tools/lab/activity/expert_caches.h"
#include "tools/lab/activity/profile.h"
#include "tools/lab/activity/routing.h"
#include "tools/lab/activity/truth.h"

namespace tierd {
namespace {

constexpr const char* kDescription =
    "tier-activity shows the active neurons that a trace of `tierd --trace FILE` recorded, or draws "
    "active\nneurons without a model.\n\n  tier activity show run.trace                   # how active "
    "neurons follow each other\n  tier activity truth run.trace -o truth.safetensors    # for predictor.name "
    "= \"oracle\"\n  tier activity routing qwen.route.csv           # another program's record of a mixture: "
    "what caches would hit\n  tier activity draw --profile llm-in-a-flash --shape opt-125m --tokens 200 -o "
    "drawn.trace\n\nExit: 0 done; 1 an output failed; 2 unusable arguments, trace or routing.";

struct Options {
  std::string file;
  std::string output;
  bool json = false;
  std::string unrelated;
  ActivityOptions activity;
  bool measured = false;
  std::vector<std::string> plugin_folders;
  std::vector<std::string> caches;
  std::string memory = "10,25,50,75";
  uint32_t experts = 0;
  DrawOptions draw;
};

int fail(const Error& error) {
  return fail(error, exit_code(error));
}

int print(const std::string& text) {
  const Status written = write_output(text);
  return written.ok() ? 0 : fail(written.error());
}

template <HasFigures T>
std::string json_text(const T& figures) {
  return figures_json(figures).dump(2) + "\n";
}

int export_truth(const Options& options) {
  auto trace = TraceReader::open(options.file);
  if (!trace.ok()) return fail(trace.error());
  const Status written = write_truth(*trace, options.output);
  return written.ok() ? 0 : fail(written.error());
}

int show_activity(const Options& options) {
  auto trace = TraceReader::open(options.file);
  if (!trace.ok()) return fail(trace.error());
  const auto sites = read_activity(*trace, options.measured);
  if (!sites.ok()) return fail(sites.error());
  std::vector<SiteActivity> unrelated;
  if (!options.unrelated.empty()) {
    auto other = TraceReader::open(options.unrelated);
    if (!other.ok()) return fail(other.error());
    auto read = read_activity(*other, options.measured);
    if (!read.ok()) return fail(read.error());
    unrelated = std::move(*read);
    if (unrelated.size() != sites->size() || unrelated.front().neurons != sites->front().neurons)
      return fail({Code::invalid_argument, options.unrelated, "is a trace of another model"});
  }
  const uint64_t tokens = sites->front().tokens.size();
  if (tokens <= options.activity.skip) {
    return fail({Code::invalid_argument, options.file,
                 fmt::format("{} decoded tokens, of which the first {} are left out (--skip); none remains",
                             tokens, options.activity.skip)});
  }
  const ActivityFigures activity = activity_figures(*sites, unrelated, options.activity);
  return print(options.json ? json_text(activity) : activity_text(activity));
}

// Parses percents: "10,25".
Result<std::vector<uint32_t>> parse_percents(const std::string& text) {
  std::vector<uint32_t> percents;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    uint32_t percent = 0;
    const auto [rest, failed] = std::from_chars(at, end, percent);
    if (failed != std::errc() || percent == 0 || percent > 100 || (rest != end && *rest != ',')) {
      return Error{
          Code::invalid_argument, "--memory",
          fmt::format("'{}' is not a list of percentages from 1 to 100; expected one such as 10,25,50",
                      text)};
    }
    percents.push_back(percent);
    if (rest == end) return percents;
    at = rest + 1;
  }
}

int show_routing(const Options& options) {
  const auto memory = parse_percents(options.memory);
  if (!memory.ok()) return fail(memory.error());
  const auto routing = read_routing(options.file, options.experts);
  if (!routing.ok()) return fail(routing.error());
  Config config;
  config.plugin_path = fmt::format("{}", fmt::join(options.plugin_folders, ":"));
  auto result = expert_caches(*routing, {*memory, options.caches}, strategies_on(plugin_path(config)));
  if (!result.ok()) return fail(result.error());
  return print(options.json ? json_text(*result) : expert_caches_text(*result));
}

int draw_trace(const Options& options) {
  const Status written = write_drawn(options.draw, options.output);
  return written.ok() ? 0 : fail(written.error());
}

int run(int argc, char** argv) {
  Options options;
  int (*command)(const Options&) = nullptr;
  CommandLine line("tier-activity", kDescription);
  const auto add = [&](const char* name, const char* help, int (*function)(const Options&)) -> CommandLine& {
    return line.command(name, help, [&command, function] { command = function; });
  };
  const auto add_file = [&](CommandLine& to, const char* help) {
    to.option("FILE", options.file, help).required().named("FILE");
  };
  const auto add_json = [&](CommandLine& to) { to.flag("--json", options.json, "for machines"); };
  const auto add_output = [&](CommandLine& to, const char* help) {
    to.option("-o,--output", options.output, help).required().named("FILE");
  };

  CommandLine& shown = add("show", "shows how active neurons change from token to token", show_activity);
  add_file(shown, "the trace");
  shown.option("--skip", options.activity.skip, "tokens to leave out at the beginning")
      .named("N")
      .shows_default();
  shown.option("-k", options.activity.most_k, "tokens of the longest window")
      .named("TOKENS")
      .between(1, 1024)
      .shows_default();
  shown.option("--unrelated", options.unrelated, "a trace of another text, for comparison").named("FILE");
  shown.flag("--measured", options.measured, "use the neurons that truly fired, in steps that were measured");
  add_json(shown);

  CommandLine& truth =
      add("truth", "writes the active neurons as tensors for the predictor oracle", export_truth);
  add_file(truth, "the trace");
  add_output(truth, "the safetensors file");

  CommandLine& routed = add(
      "routing", "shows which experts of a mixture caches would have kept, by share of memory", show_routing);
  add_file(routed, "a routing, as CSV or as JSON lines");
  routed
      .option("CACHE", options.caches,
              "KEY=VALUE[,KEY=VALUE]: keys of cache; default: lru, lfu, fifo, residency-window")
      .named("KEY=VALUE,…");
  routed.option("--memory", options.memory, "percentages of each layer's experts that fit in memory")
      .named("LIST")
      .shows_default();
  routed.option("--experts", options.experts, "number of experts in a layer, if the file does not have it")
      .named("N")
      .between(1, 65536);
  routed.option("--plugin-path", options.plugin_folders, "a folder with plugins; may be repeated")
      .named("DIR");
  add_json(routed);

  CommandLine& drawn =
      add("draw", "writes a trace of a model without weights, drawn from an activity profile", draw_trace);
  const std::string profiles = fmt::format("{}", fmt::join(known_activity_profiles(), ", "));
  drawn.option("--profile", options.draw.profile, profiles + ", or a file that ends in .toml")
      .required()
      .named("PROFILE");
  drawn.option("--shape", options.draw.shape, "the model's shape, as for tier synth")
      .required()
      .named("SHAPE");
  drawn.option("--tokens", options.draw.tokens, "number of tokens to draw")
      .required()
      .named("N")
      .between(1, 1'000'000);
  drawn.option("-s,--seed", options.draw.seed, "the same seed draws the same neurons")
      .named("N")
      .shows_default();
  drawn.option("--text", options.draw.text, "number of the text; other texts have other context and events")
      .named("N")
      .shows_default();
  drawn.flag("--by-depth", options.draw.by_depth, "layers differ by the profile's table [depth]");
  add_output(drawn, "the trace");

  if (const auto status = line.parse(argc, argv)) return *status;
  return command(options);
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  return tierd::run(argc, argv);
}
