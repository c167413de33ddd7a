// tier-conform: checks a plugin against the rules of its kind.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "core/base/log.h"
#include "core/base/standard_streams.h"
#include "core/run/plugin_tensors.h"
#include "core/strategy/plugin_file.h"
#include "core/system/memory_limits.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/exit_code.h"
#include "tools/tier/conform/agent_suite.h"
#include "tools/tier/conform/suites.h"

namespace tierd {
namespace {

// Bytes of the destinations of reads and of the agent's own buffers, as measured.
constexpr uint64_t kBytesOfReads = uint64_t{40} << 20;

constexpr const char* kDescription =
    "tier-conform checks a plugin against the rules of its kind, on a simulated core with random sites and "
    "traces; a codec with random bytes; an agent with random messages, over a temporary file or a small "
    "model.\n\n  tier-conform build/dev/lib/tierd/cache-lru.so\n  tier-conform "
    "build/dev/lib/tierd/agent-flash.so\n  tier-conform --seed 7 --worlds 200 ./cache-mine.so\n  "
    "tier-conform --tensors heat.safetensors ./cache-mine.so\n\nExit: 0 it keeps all rules; 1 it breaks "
    "some, each printed with its first example; 2 it is not a plugin.";

// Runs the suite for a plugin, by the kind and name of its file: cache-lru.so. Returns its description.
Result<std::string> try_plugin(const std::string& path, const SuiteOptions& options, Report& report) {
  const std::string file = std::filesystem::path(path).stem().string();
  const size_t dash = file.find('-');
  if (dash == std::string::npos) {
    return Error{Code::invalid_argument, path, "is not named KIND-NAME.so"};
  }
  const std::string kind = file.substr(0, dash);
  const std::string name = file.substr(dash + 1);
  if (kind == "agent") {
    TIERD_ASSIGN(const AgentEntry* const entry, load_agent(path, name));
    TIERD_ASSIGN(const AgentChoice choice, choose_settings(*entry, path, "tiers.TIER", {}));
    if ((entry->serves & serves(Op::read)) != 0) TIERD_TRY(expect_memory(kBytesOfReads, "tier-conform"));
    run_agent_suite(choice, options, report);
    return fmt::format("agent '{}'", name);
  }
  StrategyChoice choice;
  choice.origin = path;
  TIERD_ASSIGN(choice.plugin, load_plugin(path, kind, name));
  constexpr std::string_view kKinds[] = {"predictor", "quantizer", "cache", "balancer", "codec"};
  if (std::ranges::find(kKinds, kind) == std::end(kKinds)) {
    return Error{Code::unsupported, path, fmt::format("there are no rules for a {}", kind)};
  }
  TIERD_ASSIGN(choice.parameters, Parameters::read(*choice.plugin, {}));
  run_suite(choice, options, report);
  return fmt::format("{} '{}'", kind, name);
}

Result<std::shared_ptr<const PluginTensors>> read_tensors(const std::string& path) {
  TIERD_ASSIGN(const PluginTensorFile file, PluginTensorFile::open(path));
  return file.read();
}

int run(int argc, char** argv) {
  std::string path;
  SuiteOptions options;
  std::string tensors;
  bool verbose = false;
  CommandLine line("tier-conform", kDescription);
  line.option("PLUGIN", path, "the shared object").required().named("FILE");
  line.option("-s,--seed", options.seed, "seed of sites and traces").shows_default();
  line.option("--worlds", options.worlds, "number of arrangements of sites").shows_default();
  line.option("--steps", options.steps, "number of steps in each arrangement").shows_default();
  line.option("--tensors", tensors, "a safetensors file for the plugin, as the key `cache.tensors` of tierd")
      .named("FILE");
  line.flag("-v,--verbose", verbose, "print the rules that it keeps as well");
  if (const auto status = line.parse(argc, argv)) return *status;
  if (!tensors.empty()) {
    const auto read = read_tensors(tensors);
    if (!read.ok()) {
      say(read.error().line());
      return kBadInput;
    }
    options.tensors = *read;
  }
  Report report;
  const auto tried = try_plugin(path, options, report);
  if (!tried.ok()) {
    say(tried.error().line());
    return kBadInput;
  }
  uint64_t checks = 0;
  for (const Report::Rule& rule : report.rules()) checks += rule.checks;
  std::string text = report.text(verbose);
  text +=
      fmt::format("{} {} {} rules ({} checks, seed {})\n", *tried,
                  report.ok() ? "keeps all" : "breaks some of", report.rules().size(), checks, options.seed);
  if (report.ok() && !report.last_refusal().empty() && options.tensors == nullptr)
    text +=
        fmt::format("some rules were not checked everywhere, because tensors are missing (--tensors): {}\n",
                    report.last_refusal());
  if (const Status written = write_output(text); !written.ok()) {
    say(written.error().line());
    return kFailed;
  }
  return report.ok() ? 0 : kFailed;
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  return tierd::run(argc, argv);
}
