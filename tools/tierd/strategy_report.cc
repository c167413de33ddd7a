#include "tools/tierd/strategy_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <variant>

#include "tools/tierd/report_numbers.h"

namespace tierd {
namespace {

using nlohmann::json;

// Returns a strategy's name, version and parameters, and the cost of its calls.
json strategy_json(const StrategyBase& strategy, const StrategyInstance& instance, uint64_t steps) {
  const tierd_plugin& plugin = *instance.choice().plugin;
  json parameters = json::object();
  for (const auto& [name, value] : instance.choice().parameters.values()) {
    std::visit([&, key = name](const auto& v) { parameters[key] = v; }, value);
  }
  return {{"name", plugin.name},
          {"version", plugin.version},
          {"file", instance.choice().origin},
          {"lossy", plugin.lossy != 0 || instance.choice().parameters.lossy()},
          {"parameters", parameters},
          {"metrics", instance.metrics()},
          {"calls", per(static_cast<double>(strategy.calls), steps)},
          {"ms", per(static_cast<double>(strategy.ns) * kMs, steps)}};
}

// Returns "layers", or "layers of dram and atu of gpu" where they differ.
std::string cache_names(const json& caches) {
  const std::string first = caches.begin().value()["name"].get<std::string>();
  std::string names;
  bool differ = false;
  for (const auto& [tier, cache] : caches.items()) {
    const std::string name = cache["name"].get<std::string>();
    differ = differ || name != first;
    names += fmt::format("{}{} of {}", names.empty() ? "" : " and ", name, tier);
  }
  return differ ? names : first;
}

}  // namespace

json strategies_json(Runtime& runtime) {
  const StrategySet& set = runtime.strategies();
  const Strategies& s = set.strategies();
  const uint64_t steps = runtime.engine().prefill_times().steps + runtime.engine().decode_times().steps;
  json caches = json::object();  // of each tier's first memory
  for (const Tier& tier : runtime.plan().tiers.memories) {
    caches[tier.config.name] =
        strategy_json(s.caches[tier.first_memory - 1u], set.cache_of(tier.first_memory), steps);
  }
  json all = {{"predictor", strategy_json(s.predictor, set.instance("predictor"), steps)},
              {"quantizer", strategy_json(s.quantizer, set.instance("quantizer"), steps)},
              {"cache", strategy_json(s.caches.front(), set.cache_of(1), steps)},
              {"caches", caches},
              {"balancer", strategy_json(s.balancer, set.instance("balancer"), steps)},
              {"ms", per(static_cast<double>(cost_of(s).ns) * kMs, steps)}};
  if (s.has_heat()) {
    all["heat"] = strategy_json(s.heat, set.instance("heat"), steps);
    all["heat"]["lossy"] = false;  // heat alone places neurons and leaves none out
  }
  return all;
}

std::string metrics_text(const json& strategy) {
  std::string text;
  for (const auto& [name, value] : strategy["metrics"].items())
    text += fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ", name, value.get<double>());
  return text;
}

std::string heat_text(const json& heat) {
  return fmt::format("{}, {:.3g} ms a step: {}", heat["name"].get<std::string>(), heat["ms"].get<double>(),
                     metrics_text(heat));
}

std::string strategies_text(const json& strategies) {
  std::string lossy;
  for (const char* kind : {"predictor", "quantizer", "cache", "balancer"}) {
    if (strategies[kind]["lossy"].get<bool>()) lossy += fmt::format("{} {}", lossy.empty() ? "" : ", ", kind);
  }
  return fmt::format("{}, {}, {}, {}: {:.3g} ms a step{}", strategies["predictor"]["name"].get<std::string>(),
                     strategies["quantizer"]["name"].get<std::string>(), cache_names(strategies["caches"]),
                     strategies["balancer"]["name"].get<std::string>(), strategies["ms"].get<double>(),
                     lossy.empty() ? "" : "; LOSSY:" + lossy);
}

json prediction_json(const Runtime& runtime) {
  json list = json::array();
  const SiteTable& sites = runtime.plan().model.sites;
  for (SiteId s = 0; s < sites.size(); ++s) {
    const SiteUse& use = runtime.scheduler().use()[s];
    if (sites[s].chosen()) continue;  // chosen sites are not predicted
    const bool whole = use.used == use.rows * sites[s].n;
    if (whole && use.measured_rows == 0) continue;
    json site = {{"site", sites[s].name},
                 {"neurons", sites[s].n},
                 {"used", per(static_cast<double>(use.used), use.rows)},
                 {"measured_rows", use.measured_rows}};
    if (use.measured_rows != 0) {
      site["active"] = per(static_cast<double>(use.active), use.measured_rows);
      site["recall"] = use.recall();
      site["precision"] = use.precision();
      site["missed_mass"] = use.missed_share();
    }
    list.push_back(std::move(site));
  }
  return list;
}

std::string prediction_text(const json& sites) {
  double used = 0, neurons = 0;
  size_t measured = 0;
  double recall = 0, precision = 0, mass = 0, most_mass = -1;
  std::string worst;
  for (const json& site : sites) {
    used += site["used"].get<double>();
    neurons += site["neurons"].get<double>();
    if (site["measured_rows"].get<uint64_t>() == 0) continue;
    ++measured;
    recall += site["recall"].get<double>();
    precision += site["precision"].get<double>();
    const double missed = site["missed_mass"].get<double>();
    mass += missed;
    if (missed > most_mass) most_mass = missed, worst = site["site"].get<std::string>();
  }
  std::string text = fmt::format("{:.3g} % of {} sites' neurons", 100 * used / neurons, sites.size());
  if (measured == 0) return text + "; what was missed was not measured (scheduler.measure_every)";
  const auto n = static_cast<double>(measured);
  return text +
         fmt::format("; recall {:.4g} %, precision {:.3g} %, missed mass {:.3g} % (most {:.3g} % in {})",
                     100 * recall / n, 100 * precision / n, 100 * mass / n, 100 * most_mass, worst);
}

namespace {

// Adds up all operators of a layer's experts that are cut into channels. `used` counts experts; hits and
// misses count channels. `first`: the first of these sites, which follows the attention of its layer.
SiteUse use_of_experts(const Runtime& runtime, SiteId first) {
  const SiteTable& sites = runtime.plan().model.sites;
  SiteUse all;
  for (SiteId s = first; s < sites.size() && sites[s].of_expert() && sites[s].layer == sites[first].layer;
       ++s) {
    const SiteUse& use = runtime.scheduler().use()[s];
    if (sites[s].op_group == static_cast<uint16_t>(OpGroup::expert_up)) all.used += use.rows;
    all.hits += use.hits;
    all.staged += use.staged;
    all.misses += use.misses;
    all.foreseen += use.foreseen;
    all.wanted += use.wanted;
    all.right += use.right;
  }
  all.rows = runtime.scheduler().use()[first - 1].rows;
  return all;
}

}  // namespace

json experts_json(const Runtime& runtime) {
  json list = json::array();
  const SiteTable& sites = runtime.plan().model.sites;
  const uint32_t experts = runtime.plan().store.manifest().config.n_experts;
  for (SiteId s = 0; s < sites.size(); ++s) {
    const bool in_channels = sites[s].of_expert() && !sites[s - 1].of_expert();
    if (!sites[s].chosen() && !in_channels) continue;
    const SiteUse use = in_channels ? use_of_experts(runtime, s) : runtime.scheduler().use()[s];
    json site = {{"site", fmt::format("layers.{}.experts", sites[s].layer)},
                 {"experts", experts},
                 {"used", per(static_cast<double>(use.used), use.rows)},
                 {"hits", use.hits},
                 {"staged", use.staged},
                 {"misses", use.misses}};
    if (use.foreseen != 0) {
      site["foreseen"] = use.foreseen;
      site["precision"] = use.ahead_precision();
      site["recall"] = use.ahead_recall();
    }
    list.push_back(std::move(site));
  }
  return list;
}

std::string experts_text(const json& sites) {
  double hits = 0, staged = 0, misses = 0, used = 0, precision = 0, recall = 0;
  size_t foreseen = 0;
  for (const json& site : sites) {
    hits += site["hits"].get<double>();
    staged += site["staged"].get<double>();
    misses += site["misses"].get<double>();
    used += site["used"].get<double>();
    if (!site.contains("foreseen")) continue;
    ++foreseen;
    precision += site["precision"].get<double>();
    recall += site["recall"].get<double>();
  }
  const double all = std::max(1.0, hits + staged + misses);
  std::string text = fmt::format("{:.3g} of {} a token: {:.3g} % were there, {:.3g} % came ahead",
                                 used / static_cast<double>(sites.size()),
                                 sites[0]["experts"].get<uint32_t>(), 100 * hits / all, 100 * staged / all);
  if (foreseen == 0) return text;
  const auto n = static_cast<double>(foreseen);
  return text + fmt::format("; foreseen with precision {:.3g} %, recall {:.3g} %", 100 * precision / n,
                            100 * recall / n);
}

}  // namespace tierd
