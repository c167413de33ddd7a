// Rules for plugins of every kind, and the suite of each kind with every parameter at its bounds.
#include "tools/tier/conform/suites.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "tools/tier/conform/simulated_core.h"

namespace tierd {
namespace {

constexpr const char* kRefused = "values out of a parameter's bounds are refused";
constexpr const char* kTables =
    "extension: the same table for an id at every call, nothing for an unknown one";

using Check = void (*)(const StrategyChoice&, const SuiteOptions&, Report&);

Check check_of(std::string_view kind) {
  if (kind == "predictor") return check_predictor;
  if (kind == "quantizer") return check_quantizer;
  if (kind == "codec") return check_codec;
  return kind == "cache" ? check_cache : check_balancer;
}

const char* id_of(std::string_view kind) {
  if (kind == "predictor") return TIERD_PREDICTOR_1;
  if (kind == "quantizer") return TIERD_LEVELS_1;
  if (kind == "codec") return TIERD_CODEC_1;
  return kind == "cache" ? TIERD_CACHE_1 : TIERD_BALANCER_1;
}

int64_t bounded(double value) {
  if (value >= 0x1p62) return std::numeric_limits<int64_t>::max();
  if (value <= -0x1p62) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

// Returns the bounds of a parameter's values.
std::vector<Setting> edges(const tierd_param& param) {
  std::vector<Setting> all;
  const auto add = [&](auto value) { all.push_back({param.name, value, "tier-conform"}); };
  switch (param.type) {
    case TIERD_PARAM_INTEGER:
      add(bounded(std::ceil(param.least)));
      add(bounded(std::floor(param.most)));
      break;
    case TIERD_PARAM_NUMBER:
      add(std::max(param.least, -1e300));
      add(std::min(param.most, 1e300));
      break;
    case TIERD_PARAM_FLAG:
      add(true);
      add(false);
      break;
    default:
      if (param.choices == nullptr) {
        add(std::string());
        add(std::string(10'000, 'x'));
        add(std::string("\n%s\x01"));
      } else {
        for (std::string_view left = param.choices; !left.empty();) {
          const size_t bar = std::min(left.find('|'), left.size());
          add(std::string(left.substr(0, bar)));
          left.remove_prefix(std::min(bar + 1, left.size()));
        }
      }
  }
  return all;
}

// Returns values just outside the bounds.
std::vector<Setting> beyond(const tierd_param& param) {
  std::vector<Setting> all;
  const auto add = [&](auto value) { all.push_back({param.name, value, "tier-conform"}); };
  if (param.type == TIERD_PARAM_INTEGER || param.type == TIERD_PARAM_NUMBER) {
    add(std::string("7"));
    add(std::numeric_limits<double>::quiet_NaN());
    if (std::abs(param.least) < 0x1p53) add(bounded(param.least) - 1);
    if (std::abs(param.most) < 0x1p53) add(bounded(param.most) + 1);
  } else if (param.type == TIERD_PARAM_FLAG) {
    add(int64_t{1});
  } else {
    add(true);
    if (param.choices != nullptr) add(std::string(param.choices) + "|");
  }
  return all;
}

}  // namespace

void run_suite(const StrategyChoice& choice, const SuiteOptions& options, Report& report) {
  const tierd_plugin& plugin = *choice.plugin;
  const auto check = [&](StrategyChoice of, const SuiteOptions& how) {
    const Check suite = check_of(plugin.kind);
    suite(of, how, report);
    if (options.tensors == nullptr) return;
    of.tensors = options.tensors;
    suite(of, how, report);
  };
  const void* table = plugin.extension(id_of(plugin.kind));
  report.check(kTables, table != nullptr && plugin.extension(id_of(plugin.kind)) == table,
               [&] { return fmt::format("of {}", id_of(plugin.kind)); });
  for (const char* unknown : {"tierd.unknown/1", "tierd.cache/99", ""}) {
    report.check(kTables, plugin.extension(unknown) == nullptr,
                 [&] { return fmt::format("a table for '{}'", unknown); });
  }

  check(choice, options);
  SuiteOptions brief = options;
  brief.worlds = std::min(options.worlds, 8u);
  brief.steps = std::min(options.steps, 10u);
  for (uint32_t i = 0; i < plugin.n_params; ++i) {
    for (const Setting& edge : edges(param(plugin, i))) {
      auto parameters = Parameters::read(plugin, {edge});
      report.check(kRefused, parameters.ok(),
                   [&] { return "but not those within: " + parameters.error().line(); });
      if (!parameters.ok()) continue;
      StrategyChoice at_edge = choice;
      at_edge.parameters = std::move(*parameters);
      check(std::move(at_edge), brief);
    }
    for (const Setting& outside : beyond(param(plugin, i))) {
      report.check(kRefused, !Parameters::read(plugin, {outside}).ok(), [&] { return outside.key; });
    }
  }
  if (options.tensors != nullptr) {
    report.check(kMadeWithTensors, report.checks_of(kMadeWithTensors) != 0,
                 [&] { return "refused everywhere: " + report.last_refusal(); });
  }
}

}  // namespace tierd
