#include "tools/tierd/strategy_report.h"

#include <algorithm>

namespace tierd {
namespace {

StrategyFigures figures_of(const StrategyBase& strategy, const StrategyInstance& instance, uint64_t steps) {
  const tierd_plugin& plugin = *instance.choice().plugin;
  const auto& parameters = instance.choice().parameters;
  return {.strategy = plugin.name,
          .version = plugin.version,
          .file = instance.choice().origin,
          .lossy = plugin.lossy != 0 || parameters.lossy(),
          .parameters = {parameters.values().begin(), parameters.values().end()},
          .metrics = instance.metrics(),
          .calls = per(strategy.calls, steps),
          .ms = ms_each(strategy.ns, steps)};
}

// Returns "layers", or "layers of dram and atu of gpu" where they differ.
std::string cache_names(const std::map<std::string, StrategyFigures>& caches) {
  const std::string& first = caches.begin()->second.strategy;
  std::string names;
  bool differ = false;
  for (const auto& [tier, cache] : caches) {
    differ = differ || cache.strategy != first;
    names += fmt::format("{}{} of {}", names.empty() ? "" : " and ", cache.strategy, tier);
  }
  return differ ? names : first;
}

// Returns "hot share 0.1, asked to move 12"; empty where the strategy has no metrics.
std::string metrics_text(const StrategyFigures& strategy) {
  std::string text;
  for (const auto& [name, value] : strategy.metrics)
    text += fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ", name, value);
  return text;
}

std::string strategies_text(const StrategiesFigures& s) {
  std::string lossy;
  const auto add = [&](const char* kind, const StrategyFigures& strategy) {
    if (strategy.lossy) lossy += fmt::format("{} {}", lossy.empty() ? "" : ", ", kind);
  };
  add("predictor", s.predictor);
  add("quantizer", s.quantizer);
  add("cache", s.cache);
  add("balancer", s.balancer);
  return fmt::format("{}, {}, {}, {}: {:.3g} ms a step{}", s.predictor.strategy, s.quantizer.strategy,
                     cache_names(s.caches), s.balancer.strategy, s.ms,
                     lossy.empty() ? "" : "; LOSSY:" + lossy);
}

}  // namespace

StrategiesFigures strategies_figures(Runtime& runtime) {
  const StrategySet& set = runtime.strategies();
  const Strategies& s = set.strategies();
  const uint64_t steps = runtime.engine().prefill_times().steps + runtime.engine().decode_times().steps;
  StrategiesFigures all{.predictor = figures_of(s.predictor, set.instance("predictor"), steps),
                        .quantizer = figures_of(s.quantizer, set.instance("quantizer"), steps),
                        .cache = figures_of(s.caches.front(), set.cache_of(1), steps),
                        .balancer = figures_of(s.balancer, set.instance("balancer"), steps),
                        .caches = {},
                        .heat = {},
                        .ms = ms_each(cost_of(s).ns, steps)};
  for (const Tier& tier : runtime.plan().tiers.memories) {
    all.caches[tier.config.name] =
        figures_of(s.caches[tier.first_memory - 1u], set.cache_of(tier.first_memory), steps);
  }
  if (s.has_heat()) {
    all.heat = figures_of(s.heat, set.instance("heat"), steps);
    all.heat->lossy = false;  // heat alone places neurons and leaves none out
  }
  return all;
}

ReportLines strategy_lines(const StrategiesFigures& strategies) {
  ReportLines lines = {{"strategies", strategies_text(strategies)}};
  if (const auto& heat = strategies.heat) {
    lines.emplace_back(
        "heat", fmt::format("{}, {:.3g} ms a step: {}", heat->strategy, heat->ms, metrics_text(*heat)));
  }
  if (const std::string said = metrics_text(strategies.balancer); !said.empty())
    lines.emplace_back("balancer", said);
  return lines;
}

std::vector<PredictionFigures> prediction_figures(const Runtime& runtime) {
  std::vector<PredictionFigures> list;
  const SiteTable& sites = runtime.plan().model.sites;
  for (SiteId s = 0; s < sites.size(); ++s) {
    const SiteUse& use = runtime.scheduler().use()[s];
    if (sites[s].chosen()) continue;  // chosen sites are not predicted
    const bool whole = use.used == use.rows * sites[s].n;
    if (!whole || use.measured_rows != 0) list.push_back({sites[s].name, sites[s].n, use});
  }
  return list;
}

std::string prediction_text(const std::vector<PredictionFigures>& sites) {
  double used = 0, neurons = 0;
  size_t measured = 0;
  double recall = 0, precision = 0, mass = 0, most_mass = -1;
  std::string worst;
  for (const PredictionFigures& site : sites) {
    used += site.used();
    neurons += site.neurons;
    if (!site.measured()) continue;
    ++measured;
    recall += site.use.recall();
    precision += site.use.precision();
    const double missed = site.use.missed_share();
    mass += missed;
    if (missed > most_mass) most_mass = missed, worst = site.site;
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
  uint64_t experts = 0;
  for (SiteId s = first; s < sites.size() && sites[s].of_expert() && sites[s].layer == sites[first].layer;
       ++s) {
    const SiteUse& use = runtime.scheduler().use()[s];
    if (sites[s].op_group == static_cast<uint16_t>(OpGroup::expert_up)) experts += use.rows;
    add_figures(all, use);
  }
  all.used = experts;
  all.rows = runtime.scheduler().use()[first - 1].rows;
  return all;
}

}  // namespace

std::vector<ExpertFigures> expert_figures(const Runtime& runtime) {
  std::vector<ExpertFigures> list;
  const SiteTable& sites = runtime.plan().model.sites;
  const uint32_t experts = runtime.plan().store.manifest().config.n_experts;
  for (SiteId s = 0; s < sites.size(); ++s) {
    const bool in_channels = sites[s].of_expert() && !sites[s - 1].of_expert();
    if (!sites[s].chosen() && !in_channels) continue;
    const SiteUse use = in_channels ? use_of_experts(runtime, s) : runtime.scheduler().use()[s];
    list.push_back({fmt::format("layers.{}.experts", sites[s].layer), experts, use});
  }
  return list;
}

std::string experts_text(const std::vector<ExpertFigures>& sites) {
  SiteUse sum;
  double used = 0, precision = 0, recall = 0;
  size_t foreseen = 0;
  for (const ExpertFigures& site : sites) {
    add_figures(sum, site.use);
    used += site.used();
    if (site.use.foreseen == 0) continue;
    ++foreseen;
    precision += site.use.ahead_precision();
    recall += site.use.ahead_recall();
  }
  const uint64_t all = std::max<uint64_t>(1, sum.hits + sum.staged + sum.misses);
  std::string text = fmt::format("{:.3g} of {} a token: {:.3g} % were there, {:.3g} % came ahead",
                                 used / static_cast<double>(sites.size()), sites[0].experts,
                                 per(100.0 * static_cast<double>(sum.hits), all),
                                 per(100.0 * static_cast<double>(sum.staged), all));
  if (foreseen == 0) return text;
  const auto n = static_cast<double>(foreseen);
  return text + fmt::format("; foreseen with precision {:.3g} %, recall {:.3g} %", 100 * precision / n,
                            100 * recall / n);
}

}  // namespace tierd
