#include "tools/tierd/known_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/base/log.h"
#include "core/run/loss_settings.h"
#include "core/run/measured_loss.h"

namespace tierd {
namespace {

using nlohmann::json;

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

json to_json(const MeasuredLoss& loss) {
  json measured = {{"divergence", loss.divergence},
                   {"perplexity", loss.perplexity},
                   {"reference_perplexity", loss.reference_perplexity},
                   {"perplexity_change", loss.perplexity_change()},
                   {"against", loss.against_store ? "store" : "file"},
                   {"tokens", loss.tokens},
                   {"text", loss.text},
                   {"text_checksum", loss.text_checksum},
                   {"date", loss.date},
                   {"used", nullptr}};
  if (loss.used_neurons && loss.used_bytes)
    measured["used"] = {{"neurons", *loss.used_neurons}, {"bytes", *loss.used_bytes}};
  return measured;
}

// Returns "KL 0.295 nats a token, perplexity +33.1 % on 510 tokens of wiki.txt (tier-compare, 2026-11-30)".
std::string verdict_text(const json& measured) {
  const auto tokens = measured["tokens"].get<uint64_t>();
  return fmt::format("KL {:.3g} nats a token{}, perplexity {:+.3g} % on {}{} tokens of {} (tier-compare, {})",
                     measured["divergence"].get<double>(),
                     measured["against"] == "store" ? " against the store" : "",
                     100 * measured["perplexity_change"].get<double>(), tokens < kEnoughTokens ? "only " : "",
                     tokens, measured["text"].get<std::string>(), measured["date"].get<std::string>());
}

Result<std::optional<MeasuredLoss>> kept_for(const RunPlan& plan, const Arguments& arguments) {
  TIERD_ASSIGN(const LossSettings settings, loss_settings(plan, arguments.config.measure_every));
  return find_loss(plan.store.directory(), settings);
}

// Refuses a loss that is too large, and a stored verdict that cannot be read.
Status check_loss(const json& loss) {
  if (loss.is_null()) return {};
  const auto refuse = [&](const std::string& why) {
    return Error{Code::invalid_argument, "", loss_line(loss) + why};
  };
  if (!loss["unreadable"].is_null()) return refuse("; --force runs without it");
  if (loss["measured"].is_null() || loss["measured"]["divergence"].get<double>() <= kMostDivergence)
    return {};
  return refuse(
      fmt::format(": more than {} nats a token, so that the text is not the model's; --force runs it "
                  "all the same",
                  kMostDivergence));
}

}  // namespace

json known_loss(const RunPlan& plan, const Arguments& arguments) {
  if (plan.config.execute == "trace" || !is_lossy(plan)) return nullptr;
  json loss = {{"measured", nullptr}, {"unreadable", nullptr}, {"command", compare_command(arguments)}};
  const auto found = kept_for(plan, arguments);
  if (!found.ok()) {
    loss["unreadable"] = found.error().line();
  } else if (*found) {
    loss["measured"] = to_json(**found);
  }
  return loss;
}

std::string loss_text(const json& loss) {
  if (loss.is_null()) return "";
  const auto command = loss["command"].get<std::string>();
  if (!loss["unreadable"].is_null()) {
    return fmt::format("unknown: {}; remove the file, or {} measures anew what it should hold",
                       loss["unreadable"].get<std::string>(), command);
  }
  if (loss["measured"].is_null()) return fmt::format("not measured: {} measures it", command);
  return verdict_text(loss["measured"]);
}

std::string loss_line(const json& loss) {
  if (loss.is_null()) return "";
  return (loss["measured"].is_null() ? "loss " : "measured loss: ") + loss_text(loss);
}

Result<json> tell_loss(const RunPlan& plan, const Arguments& arguments) {
  json loss = known_loss(plan, arguments);
  if (!arguments.force) TIERD_TRY(check_loss(loss));
  if (!loss.is_null() && !arguments.quiet) say(loss_line(loss));
  return loss;
}

}  // namespace tierd
