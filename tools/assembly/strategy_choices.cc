#include "tools/assembly/strategy_choices.h"

#include <array>
#include <cstdlib>

#include "core/host/plugin_file.h"
#include "tools/assembly/plugin_tensors.h"

namespace tierd {
namespace {

// What the host reads in a strategy's table beside the plugin's parameters.
constexpr std::array<std::string_view, 3> kOwnKeys = {"name", "fallback", "tensors"};

}  // namespace

PluginPath plugin_path(const Config& config) {
  std::vector<std::string> folders = PluginPath::split(config.plugin_path);
  const auto add = [&](const std::vector<std::string>& more) {
    folders.insert(folders.end(), more.begin(), more.end());
  };
  if (const char* environment = std::getenv("TIERD_PLUGIN_PATH")) add(PluginPath::split(environment));
  add({PluginPath::installed()});
  return PluginPath(std::move(folders));
}

Result<StrategyChoice> choose_strategy(const PluginPath& path, std::string_view kind,
                                       const StrategyConfig& strategy) {
  StrategyChoice choice;
  TIERD_ASSIGN(choice.origin, path.find(kind, strategy.name));
  TIERD_ASSIGN(choice.plugin, load_plugin(choice.origin, kind, strategy.name));
  TIERD_ASSIGN(choice.parameters, Parameters::read(*choice.plugin, strategy.settings, kOwnKeys));
  if (!strategy.tensors.empty()) {
    TIERD_ASSIGN(choice.tensors, read_plugin_tensors(strategy.tensors));
  }
  return choice;
}

Result<StrategyChoices> choose_strategies(const Config& config) {
  const PluginPath path = plugin_path(config);
  StrategyChoices choices;
  TIERD_ASSIGN(choices.predictor, choose_strategy(path, "predictor", config.predictor));
  TIERD_ASSIGN(choices.quantizer, choose_strategy(path, "quantizer", config.quantizer));
  TIERD_ASSIGN(choices.cache, choose_strategy(path, "cache", config.cache));
  TIERD_ASSIGN(choices.balancer, choose_strategy(path, "balancer", config.balancer));
  return choices;
}

Result<StrategyChoices> choose_fallbacks(const Config& config) {
  const PluginPath path = plugin_path(config);
  const auto fallback = [&](std::string_view kind, const StrategyConfig& strategy) -> Result<StrategyChoice> {
    if (strategy.fallback.empty()) return StrategyChoice{};
    return choose_strategy(path, kind, StrategyConfig{strategy.fallback});
  };
  StrategyChoices choices;
  TIERD_ASSIGN(choices.predictor, fallback("predictor", config.predictor));
  TIERD_ASSIGN(choices.quantizer, fallback("quantizer", config.quantizer));
  TIERD_ASSIGN(choices.cache, fallback("cache", config.cache));
  TIERD_ASSIGN(choices.balancer, fallback("balancer", config.balancer));
  return choices;
}

}  // namespace tierd
