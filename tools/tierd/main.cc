// tierd: a text on the terminal, or a server.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/log.h"
#include "core/base/nearest.h"
#include "core/base/standard_streams.h"
#include "core/host/agent_file.h"
#include "core/host/plugin_file.h"
#include "core/host/plugin_manual.h"
#include "core/run/runtime.h"
#include "core/text/tokenizer.h"
#include "tools/command_line/exit_code.h"
#include "tools/tierd/arguments.h"
#include "tools/tierd/plan.h"
#include "tools/tierd/reload.h"
#include "tools/tierd/report.h"
#include "tools/tierd/serve.h"
#include "tools/tierd/terminal.h"

namespace tierd {
namespace {

// Rows of a prompt that are scored at once, where a client asks for that (echo with logprobs): each takes a
// row of logits in the budget.
constexpr uint32_t kScoredRows = 64;

Result<std::string> manual_of(const PluginPath::Found& found) {
  if (found.kind == "agent") {
    TIERD_ASSIGN(const AgentEntry* const entry, load_agent(found.path, found.name));
    return agent_manual(*entry, found.path);
  }
  TIERD_ASSIGN(const tierd_plugin* const plugin, load_plugin(found.path, found.kind, found.name));
  return plugin_manual(*plugin, found.path);
}

// The manual of every plugin of that name.
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
                 fmt::format("there is no plugin '{}'{}; --plugins lists them", arguments.plugin,
                             meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant))},
                kBadInput);
  }
  const Status written = write_output(text);
  return written.ok() ? 0 : fail(written.error(), kFailed);
}

int print_check(const Arguments& arguments, RunPlan plan, const RuntimeOptions& options) {
  auto created = Runtime::create(std::move(plan), options);
  if (!created.ok()) return fail(created.error(), exit_code(created.error()));
  const auto check = check_json(**created);
  if (!check.ok()) return fail(check.error(), kFailed);
  const Status written = write_output(arguments.json ? check->dump(2) + "\n" : check_text(*check));
  return written.ok() ? 0 : fail(written.error(), kFailed);
}

int run(const Arguments& arguments) {
  if (arguments.list_plugins) {
    const Status written = write_output(plugin_list(plugin_path(arguments.config)));
    return written.ok() ? 0 : fail(written.error(), kFailed);
  }
  if (!arguments.plugin.empty()) return print_manuals(arguments);
  Reload reload(arguments);
  RuntimeOptions options;
  options.shorten = arguments.shorten;
  options.fit = arguments.fit;
  options.force = arguments.force;
  options.quiet = arguments.quiet;
  const bool guesses = arguments.prompt_lookup || !arguments.draft_model.empty();
  if (guesses) options.logit_rows = 1 + arguments.draft_most;
  if (arguments.serves()) options.logit_rows = kScoredRows;
  auto plan = plan_run(arguments.config, options);
  if (!plan.ok()) return fail(plan.error(), kBadInput);
  for (const std::string& line : plan->fitted) {
    if (!arguments.quiet) say(line);
  }
  if (arguments.check) return print_check(arguments, std::move(*plan), options);
  std::optional<nlohmann::json> found;
  if (arguments.plan) {
    auto measured = find_plan(*plan);
    if (!measured.ok()) return fail(measured.error(), exit_code(measured.error()));
    found = std::move(*measured);
    if (!arguments.prompt_given) {
      const Status written = write_output(arguments.json ? found->dump(2) + "\n" : plan_text(*found));
      return written.ok() ? 0 : fail(written.error(), kFailed);
    }
    plan = plan_run(with_plan(arguments.config, *found), options);
    if (!plan.ok()) return fail(plan.error(), kBadInput);
  }
  const Manifest& manifest = plan->store.manifest();
  if (!manifest.has_vocab) {
    return fail({Code::not_found, plan->store.directory(),
                 "the model brings no tokenizer; name one with --tokenizer"},
                kBadInput);
  }
  const auto tokenizer = make_tokenizer(manifest.vocab, plan->store.directory());
  if (!tokenizer.ok()) return fail(tokenizer.error(), kBadInput);
  return arguments.serves() ? serve(arguments, reload, std::move(*plan), options, **tokenizer)
                            : run_on_terminal(arguments, reload, std::move(*plan), options, **tokenizer,
                                              found ? &*found : nullptr);
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  const tierd::Parsed parsed = tierd::parse_arguments(argc, argv);
  if (parsed.exit_code) return *parsed.exit_code;
  return tierd::run(parsed.arguments);
}
