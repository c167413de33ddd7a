// tierd: generates a text on the terminal, or serves.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/nearest.h"
#include "core/base/standard_streams.h"
#include "core/report/figure_json.h"
#include "core/run/plugin_tensors.h"
#include "core/run/prepare_run.h"
#include "core/strategy/agent_file.h"
#include "core/strategy/plugin_file.h"
#include "core/strategy/plugin_manual.h"
#include "core/system/cores.h"
#include "tools/command_line/exit_code.h"
#include "tools/tierd/arguments.h"
#include "tools/tierd/chat_form.h"
#include "tools/tierd/check.h"
#include "tools/tierd/encoding_report.h"
#include "tools/tierd/figures_page.h"
#include "tools/tierd/hub_model.h"
#include "tools/tierd/known_loss.h"
#include "tools/tierd/model_tokenizer.h"
#include "tools/tierd/reload.h"
#include "tools/tierd/report.h"
#include "tools/tierd/serve.h"
#include "tools/tierd/terminal.h"

namespace tierd {
namespace {

// Rows of a prompt that are scored in one step for echo with logprobs. Each takes a row of logits in the
// budget.
constexpr uint32_t kScoredRows = 64;

Result<std::string> manual_of(const PluginPath::Found& found) {
  if (found.kind == "agent") {
    TIERD_ASSIGN(const AgentEntry* const entry, load_agent(found.path, found.name));
    return agent_manual(*entry, found.path);
  }
  TIERD_ASSIGN(const tierd_plugin* const plugin, load_plugin(found.path, found.kind, found.name));
  return plugin_manual(*plugin, found.path);
}

// Prints the manual of every plugin of that name.
int print_manuals(const Arguments& arguments) {
  const PluginPath path = plugin_path(arguments.config);
  std::string text;
  std::vector<std::string_view> known;
  const std::vector<PluginPath::Found> all = path.list();
  for (const PluginPath::Found& found : all) {
    known.push_back(found.name);
    if (arguments.plugin != found.name && arguments.plugin != found.kind + "-" + found.name) continue;
    const auto manual = manual_of(found);
    if (!manual.ok()) return fail(manual.error(), kBadInput);
    text += (text.empty() ? "" : "\n") + *manual;
  }
  if (text.empty()) {
    const std::string_view meant = nearest(arguments.plugin, known);
    return fail({Code::not_found, "--plugin",
                 fmt::format("there is no plugin '{}'{}; list the plugins with --plugins", arguments.plugin,
                             meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant))},
                kBadInput);
  }
  const Status written = write_output(text);
  return written.ok() ? 0 : fail(written.error(), kFailed);
}

// Returns warnings about settings that a user may not have intended, and that cause no error.
std::vector<std::string> warnings_of(const RunPlan& plan) {
  std::vector<std::string> lines;
  const CoreMap& cores = own_cores();
  if (plan.config.threads > cores.threads) {
    lines.push_back(fmt::format(
        "run.threads: {} threads are slower than one for each core, and this process has {} core{}",
        plan.config.threads, cores.threads, cores.threads == 1 ? "" : "s"));
  }
  const Manifest& manifest = plan.store.manifest();
  uint64_t largest = 0;  // bytes of a channel, with those of the other layers in its group
  for (const StoredSite& site : manifest.sites) {
    if (is_cut_into<Columns>(site.cut)) largest = std::max(largest, site.extent_bytes(0) * site.stride);
  }
  const TierMemory& memory = plan.memory.tiers.front();
  if (largest != 0 && largest < kDirectIoAlignment && memory.arena < memory.whole) {
    lines.push_back(
        fmt::format("channels have at most {} bytes, but a disk reads at least {}; layout row (--config "
                    "configs/hybrid.toml) may be faster for this model; compare them with tier plan",
                    largest, kDirectIoAlignment));
  }
  return lines;
}

int print_check(const Arguments& arguments, RunPlan plan, const RuntimeOptions& options, const Vocab& vocab) {
  std::optional<KnownLoss> loss = known_loss(plan, arguments);
  auto check = check_figures(std::move(plan), options, vocab);
  if (!check.ok()) return fail(check.error(), exit_code(check.error()));
  check->loss = std::move(loss);
  const Status written =
      write_output(arguments.json ? figures_json(*check).dump(2) + "\n" : check_text(*check));
  return written.ok() ? 0 : fail(written.error(), kFailed);
}

// Chooses the configuration by the model where none is named. Returns its name, or an empty text.
std::string_view choose_configuration(Arguments& arguments, const RunPlan& plan) {
  if (!arguments.config_file.empty()) return {};
  Config& config = arguments.config;
  const Config defaults;
  const bool open = config.predictor.name == defaults.predictor.name && config.predictor.settings.empty() &&
                    config.cache.name == defaults.cache.name && config.cache.settings.empty();
  if (!open || config.layout != defaults.layout) return {};
  if (!plan.store.manifest().config.is_mixture()) return "hybrid";
  config.predictor = {};
  config.predictor.name = "router";
  config.predictor.tensors = ModelTensors::kName;
  config.cache = {.name = "lru"};
  return "moe-streaming";
}

// Checked before a store is made. A model without a template is continued as it is; a template that cannot be
// read is refused.
Status check_chat_template(const Arguments& arguments, const Vocab& vocab) {
  const bool chats = arguments.mode == Mode::chat && !arguments.check;
  if (names_chat_form(arguments) || (chats && !vocab.chat_template.empty()))
    TIERD_TRY(chat_form(arguments, vocab));
  return {};
}

int run(Arguments arguments) {
  if (arguments.list_plugins || arguments.list_figures) {
    const Status written =
        write_output(arguments.list_plugins ? plugin_list(plugin_path(arguments.config)) : figures_page());
    return written.ok() ? 0 : fail(written.error(), kFailed);
  }
  if (!arguments.plugin.empty()) return print_manuals(arguments);
  if (const auto ended = take_hub_model(arguments)) return *ended;
  Reload reload(arguments);
  RuntimeOptions options;
  options.shorten = arguments.shorten;
  options.shortest_context = arguments.shortest_context;
  options.fit = arguments.fit;
  options.force = arguments.force;
  options.quiet = arguments.quiet;
  const SpeculationConfig& speculation = arguments.config.speculation;
  if (speculation.guesses()) options.logit_rows = 1 + speculation.most;
  if (arguments.serves()) options.logit_rows = kScoredRows;
  auto plan = plan_run(arguments.config, options);
  if (!plan.ok()) return fail(plan.error(), kBadInput);
  const std::string_view chosen = choose_configuration(arguments, *plan);
  if (chosen == "moe-streaming") {
    plan = plan_run(arguments.config, options);
    if (!plan.ok()) return fail(plan.error(), kBadInput);
  }
  for (const std::string& line : plan->fitted) {
    if (!arguments.quiet) say(line);
  }
  const auto tokenizer = model_tokenizer(arguments.config, plan->store);
  if (!tokenizer.ok()) return fail(tokenizer.error(), kBadInput);
  if (const Status known = check_chat_template(arguments, (*tokenizer)->vocab()); !known.ok())
    return fail(known.error(), kBadInput);
  for (const std::string& line : warnings_of(*plan)) {
    if (!arguments.quiet) say(line);
  }
  if (arguments.check) {
    plan = with_counted_store(std::move(*plan), arguments.config, options);
    if (!plan.ok()) return fail(plan.error(), exit_code(plan.error()));
    return print_check(arguments, std::move(*plan), options, (*tokenizer)->vocab());
  }
  if (!chosen.empty() && !arguments.quiet)
    say(fmt::format("configuration: {}, chosen by the model; set another one with --config", chosen));
  // From here on files may be written.
  plan = with_store(std::move(*plan), arguments.config, options);
  if (!plan.ok()) return fail(plan.error(), exit_code(plan.error()));
  if (const auto anew = stored_anew(plan->store); !anew.empty() && !arguments.quiet)
    say("encoded anew: " + encodings_text(anew));
  const auto loss = tell_loss(*plan, arguments);
  if (!loss.ok()) return fail(loss.error(), kBadInput);
  return arguments.serves()
             ? serve(arguments, reload, std::move(*plan), options, **tokenizer)
             : run_on_terminal(arguments, reload, std::move(*plan), options, **tokenizer, *loss);
}

// Ends the process with an error where a plugin calls exit(), which would otherwise look like success.
class EndsHere {
 public:
  EndsHere() {
    std::atexit([] {
      if (ended.load()) return;
      say("tierd: a plugin or a library called exit() during the run");
      std::fflush(nullptr);
      std::_Exit(kFailed);
    });
  }
  ~EndsHere() { ended.store(true); }
  EndsHere(const EndsHere&) = delete;
  EndsHere& operator=(const EndsHere&) = delete;

 private:
  static inline std::atomic<bool> ended{false};
};

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  const tierd::EndsHere ends;
  tierd::Parsed parsed = tierd::parse_arguments(argc, argv);
  if (parsed.exit_code) return *parsed.exit_code;
  return tierd::run(std::move(parsed.arguments));
}
