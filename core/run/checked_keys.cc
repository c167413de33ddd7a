#include "core/run/checked_keys.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include "core/engine/memory_plan.h"
#include "core/strategy/plugin_path.h"

namespace tierd {
namespace {

constexpr uint32_t kMostThreads = 1024;
constexpr uint32_t kMostSequences = 1024;
constexpr uint32_t kMostGuesses = 63;          // excluding the token that they follow
constexpr uint32_t kLeastWindow = 500;         // ms, the kernel's least
constexpr uint32_t kLongestWindow = 10'000;    // ms
constexpr uint32_t kLongestCalm = 86'400'000;  // ms

Error wrong(std::string_view key, std::string what) {
  return {Code::invalid_argument, std::string(key), std::move(what)};
}

Status check_range(std::string_view key, uint32_t value, uint32_t least, uint32_t most) {
  if (value >= least && value <= most) return {};
  return wrong(key, fmt::format("{}, expected {} to {}", value, least, most));
}

Status check_there(std::string_view key, const std::string& path) {
  std::error_code error;
  if (path.empty() || std::filesystem::exists(path, error)) return {};
  return Error{Code::not_found, std::string(key),
               fmt::format("{}: {}", path, error ? error.message() : "there is no such file")};
}

Status check_folders(std::string_view key, std::string_view list) {
  for (const std::string& folder : PluginPath::split(list)) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder, ignored))
      return wrong(key, fmt::format("'{}' is not a folder; expected folders, separated by ':'", folder));
  }
  return {};
}

// Checks the table even if its source is off, so that a source that is turned on later works.
Status check_pressure(const PressureConfig& config) {
  TIERD_TRY(check_range("pressure.window_ms", config.window_ms, kLeastWindow, kLongestWindow));
  TIERD_TRY(check_range("pressure.stall_ms", config.stall_ms, 1, config.window_ms));
  TIERD_TRY(check_range("pressure.limit_percent", config.limit_percent, 1, 99));
  TIERD_TRY(check_range("pressure.calm_ms", config.calm_ms, 1, kLongestCalm));
  TIERD_TRY(parse_capacity(config.step, "pressure.step"));
  TIERD_TRY(parse_capacity(config.least, "pressure.least"));
  return {};
}

Status check_speculation(const SpeculationConfig& config) {
  TIERD_TRY(check_range("speculation.most", config.most, 1, kMostGuesses));
  if (!config.lookup || config.model.empty()) return {};
  return wrong("speculation.lookup", "speculation.model is set as well, expected one of them");
}

}  // namespace

Status check_keys(const Config& config) {
  TIERD_TRY(check_range("run.threads", config.threads, 0, kMostThreads));
  TIERD_TRY(check_range("run.ubatch", config.ubatch, 1, UINT16_MAX));
  TIERD_TRY(check_range("plugins.deadline_ms", config.plugin_deadline_ms, 1, UINT32_MAX));
  TIERD_TRY(check_range("run.sequences", config.sequences, 1, kMostSequences));
  TIERD_TRY(check_there("model.tokenizer", config.tokenizer));
  TIERD_TRY(check_there("model.order", config.order));
  TIERD_TRY(check_folders("plugins.path", config.plugin_path));
  TIERD_TRY(check_speculation(config.speculation));
  TIERD_TRY(check_pressure(config.pressure));
  return check_named(config.heat, "heat", "a predictor that keeps heat");
}

Status check_named(const StrategyConfig& strategy, std::string_view table, std::string_view what) {
  if (!strategy.name.empty()) return {};
  std::string key;
  if (!strategy.settings.empty()) key = strategy.settings.front().key;
  if (!strategy.fallback.empty()) key = "fallback";
  if (!strategy.tensors.empty()) key = "tensors";
  if (key.empty()) return {};
  return wrong(fmt::format("{}.{}", table, key),
               fmt::format("is set for {}, but {}.name is empty; set the plugin's name", what, table));
}

}  // namespace tierd
