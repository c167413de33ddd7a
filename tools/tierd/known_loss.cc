#include "tools/tierd/known_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/base/log.h"
#include "core/run/loss_settings.h"

namespace tierd {
namespace {

// A verdict on fewer tokens is marked, because chance has a large part in it.
constexpr uint64_t kEnoughTokens = 500;

// Quotes a word for a shell's command line.
std::string shell_word(const std::string& word) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("/._-=:,+%@").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Returns the tier-compare command for these arguments. Flags that change neither results nor memory are left
// out.
std::string compare_command(const Arguments& arguments) {
  const Config& config = arguments.config;
  const Config& read = arguments.read_config;
  std::string command = "tier-compare";
  const auto add = [&](const std::string& flag, const std::string& value) {
    command += fmt::format(" {} {}", flag, shell_word(value));
  };
  if (!arguments.config_file.empty()) add("--config", arguments.config_file);
  for (const std::string& set : arguments.overrides) add("--set", set);
  if (config.plugin_path != read.plugin_path) add("--set", "plugins.path=" + config.plugin_path);
  if (config.kv != read.kv) add("--set", "run.kv=" + config.kv);
  if (config.sequences != read.sequences) add("--set", fmt::format("run.sequences={}", config.sequences));
  if (config.context != read.context) add("-c", std::to_string(config.context));
  if (config.tokenizer != read.tokenizer) add("--tokenizer", config.tokenizer);
  if (config.model != read.model) add("-m", config.model);
  if (arguments.fit) command += " --fit";
  return command + " text.txt --tokens 1000";
}

// Returns "KL 0.295 nats a token, perplexity +33.1 % on 510 tokens of wiki.txt (tier-compare, 2026-11-30)".
std::string verdict_text(const MeasuredLoss& loss) {
  return fmt::format("KL {:.3g} nats a token{}, perplexity {:+.3g} % on {}{} tokens of {} (tier-compare, {})",
                     loss.divergence, loss.against_store ? " against the store" : "",
                     100 * loss.perplexity_change(), loss.tokens < kEnoughTokens ? "only " : "", loss.tokens,
                     loss.text, loss.date);
}

Result<std::optional<MeasuredLoss>> kept_for(const RunPlan& plan, const Arguments& arguments) {
  TIERD_ASSIGN(const LossSettings settings, loss_settings(plan, arguments.config.measure_every));
  return find_loss(plan.store.directory(), settings);
}

// Refuses a loss that is too large, and a stored verdict that cannot be read.
Status check_loss(const KnownLoss& loss) {
  const auto refuse = [&](const std::string& why) {
    return Error{Code::invalid_argument, "", loss_line(loss) + why};
  };
  if (!loss.unreadable.empty()) return refuse("; --force runs without it");
  if (!loss.measured || loss.measured->divergence <= kMostDivergence) return {};
  return refuse(
      fmt::format(": more than {} nats a token, so that the text is not the model's; --force runs it "
                  "all the same",
                  kMostDivergence));
}

}  // namespace

std::optional<KnownLoss> known_loss(const RunPlan& plan, const Arguments& arguments) {
  if (plan.config.execute == "trace" || !is_lossy(plan)) return std::nullopt;
  KnownLoss loss{.command = compare_command(arguments)};
  auto found = kept_for(plan, arguments);
  if (found.ok()) {
    loss.measured = *std::move(found);
  } else {
    loss.unreadable = found.error().line();
  }
  return loss;
}

std::string loss_text(const KnownLoss& loss) {
  if (!loss.unreadable.empty()) {
    return fmt::format("unknown: {}; remove the file, or {} measures anew what it should hold",
                       loss.unreadable, loss.command);
  }
  if (!loss.measured) return fmt::format("not measured: {} measures it", loss.command);
  return verdict_text(*loss.measured);
}

std::string loss_line(const KnownLoss& loss) {
  return (loss.measured ? "measured loss: " : "loss ") + loss_text(loss);
}

Result<std::optional<KnownLoss>> tell_loss(const RunPlan& plan, const Arguments& arguments) {
  std::optional<KnownLoss> loss = known_loss(plan, arguments);
  if (loss && !arguments.force) TIERD_TRY(check_loss(*loss));
  if (loss && !arguments.quiet) say(loss_line(*loss));
  return loss;
}

}  // namespace tierd
