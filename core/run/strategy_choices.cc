#include "core/run/strategy_choices.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <utility>

#include "core/strategy/plugin_file.h"

namespace tierd {
namespace {

// The keys of a strategy's table that the host reads itself.
constexpr std::array<std::string_view, 3> kKeysOfStrategy = {"name", "fallback", "tensors"};

}  // namespace

PluginPath plugin_path(const Config& config) {
  return PluginPath::usual(config.plugin_path);
}

std::string table_of_cache(const std::string& tier) {
  return tier.empty() ? "cache" : fmt::format("tiers.{}.cache", tier);
}

std::vector<const ChosenStrategy*> ChosenStrategies::all() const {
  std::vector<const ChosenStrategy*> all = {&predictor, &quantizer, &cache, &balancer, &heat};
  for (const auto& [tier, chosen] : tier_caches) all.push_back(&chosen);
  return all;
}

bool ChosenStrategies::keep_heat() const {
  return heat.choice.plugin != nullptr || offers_heat(*predictor.choice.plugin);
}

Status ChosenStrategies::check_model(const ModelConfig& config) const {
  for (const ChosenStrategy* chosen : all()) {
    if (chosen->tensors) TIERD_TRY(chosen->tensors->check_model(config));
  }
  return {};
}

std::vector<TableRequest> ChosenStrategies::tables() const {
  std::vector<TableRequest> tables;
  for (const ChosenStrategy* chosen : all()) {
    if (chosen->tensors) tables.push_back({chosen->tensors->path(), chosen->tensors->bytes()});
  }
  return tables;
}

Result<ChosenStrategy> choose_strategy(const PluginPath& path, std::string_view kind,
                                       const StrategyConfig& strategy,
                                       std::shared_ptr<const ModelTensors> model, std::string_view table) {
  if (table.empty()) table = kind;
  ChosenStrategy chosen;
  StrategyChoice& choice = chosen.choice;
  TIERD_ASSIGN(choice.origin, path.find(kind, strategy.name, fmt::format("{}.name", table)));
  TIERD_ASSIGN(choice.plugin, load_plugin(choice.origin, kind, strategy.name));
  TIERD_ASSIGN(choice.parameters,
               Parameters::read(*choice.plugin, strategy.settings, kKeysOfStrategy, table));
  if (strategy.tensors == ModelTensors::kName) {
    if (model == nullptr)
      return Error{Code::unsupported, fmt::format("{}.tensors", table),
                   "\"model\" (the tensors of the model) is not supported by this program; write them into a "
                   "file with tier train router"};
    chosen.tensors = std::move(model);
  } else if (!strategy.tensors.empty()) {
    auto file = PluginTensorFile::open(strategy.tensors);
    if (!file.ok()) return file.error().below(fmt::format("{}.tensors", table));
    chosen.tensors = std::make_shared<const PluginTensorFile>(std::move(*file));
  }
  return chosen;
}

Result<ChosenStrategies> choose_strategies(const Config& config,
                                           const std::shared_ptr<const ModelTensors>& model) {
  const PluginPath path = plugin_path(config);
  ChosenStrategies chosen;
  TIERD_ASSIGN(chosen.predictor, choose_strategy(path, "predictor", config.predictor, model));
  TIERD_ASSIGN(chosen.quantizer, choose_strategy(path, "quantizer", config.quantizer, model));
  TIERD_ASSIGN(chosen.cache, choose_strategy(path, "cache", config.cache, model));
  TIERD_ASSIGN(chosen.balancer, choose_strategy(path, "balancer", config.balancer, model));
  if (!config.heat.name.empty()) {
    TIERD_ASSIGN(chosen.heat, choose_strategy(path, "predictor", config.heat, model, "heat"));
    if (!offers_heat(*chosen.heat.choice.plugin))
      return Error{Code::unsupported, "heat.name",
                   fmt::format("predictor '{}' does not measure heat (it has no extension {})",
                               config.heat.name, TIERD_HEAT_1)};
  }
  for (const TierConfig& tier : config.tiers) {
    if (tier.cache.name.empty()) continue;
    TIERD_ASSIGN(chosen.tier_caches[tier.name],
                 choose_strategy(path, "cache", tier.cache, model, table_of_cache(tier.name)));
  }
  return chosen;
}

Result<StrategyChoice> read_tensors(ChosenStrategy chosen) {
  if (chosen.tensors) {
    TIERD_ASSIGN(chosen.choice.tensors, chosen.tensors->read());
  }
  return std::move(chosen.choice);
}

Result<StrategyChoices> read_tensors(ChosenStrategies chosen) {
  StrategyChoices choices;
  TIERD_ASSIGN(choices.predictor, read_tensors(std::move(chosen.predictor)));
  TIERD_ASSIGN(choices.quantizer, read_tensors(std::move(chosen.quantizer)));
  TIERD_ASSIGN(choices.cache, read_tensors(std::move(chosen.cache)));
  TIERD_ASSIGN(choices.balancer, read_tensors(std::move(chosen.balancer)));
  TIERD_ASSIGN(choices.heat, read_tensors(std::move(chosen.heat)));
  for (auto& [tier, cache] : chosen.tier_caches) {
    TIERD_ASSIGN(choices.tier_caches[tier], read_tensors(std::move(cache)));
  }
  return choices;
}

Error naming_model(Error error, const std::string& model) {
  constexpr std::string_view kWord = "MODEL";
  const auto in_word = [&](size_t at) {
    return at < error.detail.size() &&
           (std::isalnum(static_cast<unsigned char>(error.detail[at])) != 0 || error.detail[at] == '_');
  };
  for (size_t at = error.detail.find(kWord); at != std::string::npos; at = error.detail.find(kWord, at)) {
    if ((at != 0 && in_word(at - 1)) || in_word(at + kWord.size())) {
      at += kWord.size();
      continue;
    }
    error.detail.replace(at, kWord.size(), model);
    at += model.size();
  }
  return error;
}

Result<StrategyChoices> choose_fallbacks(const Config& config) {
  const PluginPath path = plugin_path(config);
  const auto fallback = [&](std::string_view kind, const StrategyConfig& strategy,
                            const std::string& table) -> Result<StrategyChoice> {
    if (strategy.fallback.empty()) return StrategyChoice{};
    StrategyChoice choice;
    TIERD_ASSIGN(choice.origin, path.find(kind, strategy.fallback, table + ".fallback"));
    TIERD_ASSIGN(choice.plugin, load_plugin(choice.origin, kind, strategy.fallback));
    TIERD_ASSIGN(choice.parameters, Parameters::read(*choice.plugin, {}));
    return choice;
  };
  StrategyChoices choices;
  TIERD_ASSIGN(choices.predictor, fallback("predictor", config.predictor, "predictor"));
  TIERD_ASSIGN(choices.quantizer, fallback("quantizer", config.quantizer, "quantizer"));
  TIERD_ASSIGN(choices.cache, fallback("cache", config.cache, "cache"));
  TIERD_ASSIGN(choices.balancer, fallback("balancer", config.balancer, "balancer"));
  TIERD_ASSIGN(choices.heat, fallback("predictor", config.heat, "heat"));
  for (const TierConfig& tier : config.tiers) {
    if (tier.cache.name.empty()) continue;
    TIERD_ASSIGN(choices.tier_caches[tier.name], fallback("cache", tier.cache, table_of_cache(tier.name)));
  }
  return choices;
}

}  // namespace tierd
