#include "tools/tierd/unit_report.h"

#include <algorithm>
#include <cmath>

#include "core/model/layout/cut.h"

namespace tierd {
namespace {

// A tier whose units compute, numbered as UnitLoads does.
struct ComputingTier {
  std::string name;
  std::vector<UnitId> units;
};

std::vector<ComputingTier> computing_tiers(const Runtime& runtime) {
  const TierTable& tiers = runtime.plan().tiers;
  const UnitLoads& loads = runtime.scheduler().loads();
  std::vector<ComputingTier> list;
  for (UnitId u = 0; u < tiers.topology.units.size(); ++u) {
    list.resize(std::max<size_t>(list.size(), loads.tier_of(u) + 1));
    ComputingTier& tier = list[loads.tier_of(u)];
    tier.name = tiers.tier_of(tiers.topology.units[u].memory).config.name;
    tier.units.push_back(u);
  }
  return list;
}

// Returns which sites are used in part. Where every site is used whole, returns all.
std::vector<bool> divided_sites(const Runtime& runtime) {
  const std::vector<StoredSite>& sites = runtime.plan().store.manifest().sites;
  std::vector<bool> divided;
  for (const StoredSite& site : sites) divided.push_back(!is_cut_into<Rows>(site.cut));
  if (std::ranges::count(divided, true) == 0) divided.assign(sites.size(), true);
  return divided;
}

// Sums over sites of the work of a tier's units.
struct TierSums {
  uint64_t chosen = 0;              // neurons of the divided sites
  std::vector<uint64_t> of_unit;    // of `chosen`, those of each unit
  uint64_t slowest_ns = 0, ns = 0;  // of the slowest units; of all units
  uint64_t layers_ns = 0;           // of the slowest units, in sites that belong to layers
  uint64_t windows = 0;
  double imbalance_sum = 0;
};

TierSums sums_of(const Runtime& runtime, size_t number, const ComputingTier& tier) {
  const std::vector<bool> divided = divided_sites(runtime);
  TierSums sums;
  sums.of_unit.resize(tier.units.size());
  for (SiteId s = 0; s < divided.size(); ++s) {
    const SiteLoad& load = runtime.scheduler().loads().sites()[s];
    const TierWork& work = load.tiers[number];
    for (size_t i = 0; i < tier.units.size(); ++i) {
      const UnitWork& of_unit = load.units[tier.units[i]];
      sums.ns += of_unit.ns;
      if (divided[s]) sums.of_unit[i] += of_unit.neurons, sums.chosen += of_unit.neurons;
    }
    sums.slowest_ns += work.slowest_ns;
    if (runtime.plan().model.sites[s].layer != UINT16_MAX) sums.layers_ns += work.slowest_ns;
    sums.windows += work.windows;
    sums.imbalance_sum += work.imbalance_sum;
  }
  return sums;
}

// Returns none where the tier has one unit, or where no window is complete.
std::optional<double> imbalance_of(size_t units, uint64_t windows, double sum) {
  if (units < 2 || windows == 0) return std::nullopt;
  return per(sum, windows);
}

std::vector<UnitSiteFigures> site_figures(const Runtime& runtime, const std::vector<ComputingTier>& tiers) {
  std::vector<UnitSiteFigures> list;
  const SiteTable& sites = runtime.plan().model.sites;
  for (SiteId s = 0; s < sites.size(); ++s) {
    const SiteLoad& load = runtime.scheduler().loads().sites()[s];
    UnitSiteFigures& site = list.emplace_back(UnitSiteFigures{sites[s].name, load.passes, {}});
    for (size_t t = 0; t < tiers.size(); ++t) {
      const TierWork& work = load.tiers[t];
      UnitSiteTierFigures& tier = site.tiers.emplace_back();
      tier.tier = tiers[t].name;
      for (const UnitId unit : tiers[t].units) {
        tier.neurons.push_back(load.units[unit].neurons);
        tier.ms.push_back(ms_each(load.units[unit].ns, load.passes));
      }
      tier.slowest_ms = ms_each(work.slowest_ns, load.passes);
      tier.windows = work.windows;
      tier.imbalance = imbalance_of(tiers[t].units.size(), work.windows, work.imbalance_sum);
    }
  }
  return list;
}

uint64_t steps_of(const Runtime& runtime) {
  uint64_t steps = 0;
  for (const SiteLoad& load : runtime.scheduler().loads().sites()) steps = std::max(steps, load.passes);
  return steps;
}

// Returns "load of ndp: 10 to 30 neurons a token and unit; imbalance 1.62 as executed (...)".
std::string load_text(const UnitTierFigures& tier, uint32_t window) {
  const auto [least, most] = std::ranges::minmax(tier.neurons_of_unit);
  std::string text =
      fmt::format("load of {}: {:.4g} to {:.4g} neurons a token and unit", tier.tier, least, most);
  if (!tier.imbalance) return text;
  return text + fmt::format("; imbalance {:.3g} as executed (most / mean, a site and {} tokens; {} windows)",
                            *tier.imbalance, window, tier.windows);
}

// Returns a capacity with which the tier keeps a quarter of the neurons that the balancer assigns.
std::string smaller_capacity(const Runtime& runtime, const std::string& name) {
  const RunPlan& plan = runtime.plan();
  const auto tier = static_cast<size_t>(plan.tiers.find(name) - plan.tiers.memories.data());
  const std::vector<bool> divided = divided_sites(runtime);
  uint64_t dealt_out = 0;
  for (SiteId s = 0; s < divided.size(); ++s) {
    const Edition& edition = plan.model.sites.best_of(s);
    if (divided[s]) dealt_out += uint64_t{edition.n} * edition.slot_bytes;
  }
  const uint64_t used = runtime.budget(tier).used();
  const uint64_t less = std::max(plan.memory.tiers[tier].least, used - std::min(used, dealt_out / 4 * 3));
  return fmt::format("{:.1f}MB", std::ceil(static_cast<double>(less) / 1e5) / 10);
}

// Returns none, unless one tier has computed all neurons that the balancer could have assigned.
std::optional<AloneFigures> alone_figures(const Runtime& runtime, const std::vector<UnitTierFigures>& tiers) {
  const auto alone = std::ranges::find(tiers, 1.0, &UnitTierFigures::computed_share);
  if (tiers.size() < 2 || alone == tiers.end()) return std::nullopt;
  const std::string key = runtime.plan().tiers.find(alone->tier)->key("capacity");
  return AloneFigures{alone->tier, fmt::format("--set {}={}", key, smaller_capacity(runtime, alone->tier))};
}

std::string alone_text(const UnitsFigures& units) {
  const std::string& name = units.alone->tier;
  std::string others;
  for (const UnitTierFigures& tier : units.tiers) {
    if (tier.tier != name) others += (others.empty() ? "" : " or ") + tier.tier;
  }
  return fmt::format("{0} holds every neuron: no unit of {1} computes one; give {0} less: {2}", name, others,
                     units.alone->remedy);
}

std::string beside_text(const std::vector<UnitTierFigures>& tiers) {
  std::string token, layer;
  for (const UnitTierFigures& tier : tiers) {
    const size_t count = tier.neurons_of_unit.size();
    token += fmt::format("{}{} {:.3g} ms", token.empty() ? "" : " beside ", tier.tier, tier.slowest_ms);
    if (count > 1)
      token += fmt::format(" (the slowest of {} in each pass; mean {:.3g})", count, tier.mean_ms);
    layer += fmt::format("{}{:.3g}", layer.empty() ? "" : " beside ", tier.layer_ms);
  }
  return fmt::format("computing a token: {}; a layer: {}", token, layer);
}

std::string idle_text(const IdleFigures& idle) {
  using C = IdleCounters;
  std::string moved = "; nothing was moved in them";
  if (idle.idle.moves > 0) {
    moved =
        fmt::format("; {:.3g} neurons a token moved in them ({}), {:.3g} % of the moves' {:.3g} ms hidden",
                    idle.each<&C::neurons>(idle), size_text(idle.each<&C::bytes>(idle)),
                    100 * idle.hidden_share(), idle.each_ms<&C::move_ns>(idle));
  }
  return fmt::format("{:.3g} windows a token, {:.3g} ms, in which fetching delays no unit{}",
                     idle.each<&C::windows>(idle), idle.each_ms<&C::ns>(idle), moved);
}

}  // namespace

std::optional<UnitsFigures> units_figures(const Runtime& runtime) {
  if (runtime.plan().tiers.topology.units.size() < 2) return std::nullopt;
  const std::vector<ComputingTier> tiers = computing_tiers(runtime);
  UnitsFigures figures;
  figures.steps = steps_of(runtime);
  figures.window = runtime.scheduler().loads().window();
  figures.sites = site_figures(runtime, tiers);
  std::vector<TierSums> sums;
  double chosen = 0;
  for (size_t t = 0; t < tiers.size(); ++t) {
    sums.push_back(sums_of(runtime, t, tiers[t]));
    chosen += static_cast<double>(sums.back().chosen);
  }
  figures.neurons = per(chosen, figures.steps);
  const uint64_t layers = runtime.plan().store.manifest().config.n_layers;
  for (size_t t = 0; t < tiers.size(); ++t) {
    const TierSums& sum = sums[t];
    const size_t units = tiers[t].units.size();
    UnitTierFigures& tier = figures.tiers.emplace_back();
    tier.tier = tiers[t].name;
    tier.computed_share = chosen == 0 ? 0 : static_cast<double>(sum.chosen) / chosen;
    for (const uint64_t neurons : sum.of_unit) tier.neurons_of_unit.push_back(per(neurons, figures.steps));
    tier.slowest_ms = ms_each(sum.slowest_ns, figures.steps);
    tier.mean_ms = per(ms_each(sum.ns, figures.steps), units);
    tier.layer_ms = per(ms_each(sum.layers_ns, figures.steps), layers);
    tier.windows = sum.windows;
    tier.imbalance = imbalance_of(units, sum.windows, sum.imbalance_sum);
  }
  figures.alone = alone_figures(runtime, figures.tiers);
  return figures;
}

std::optional<IdleFigures> idle_figures(const Runtime& runtime) {
  const IdleCounters idle = runtime.scheduler().idle();
  if (idle.windows == 0) return std::nullopt;
  return IdleFigures{idle, steps_of(runtime)};
}

ReportLines unit_lines(const std::optional<UnitsFigures>& units, const std::optional<IdleFigures>& idle) {
  ReportLines lines;
  if (!units || units->steps == 0) return lines;
  std::string shares;
  for (const UnitTierFigures& tier : units->tiers) {
    shares += fmt::format("{}{} {:.3g} %", shares.empty() ? "" : ", ", tier.tier, 100 * tier.computed_share);
  }
  lines.emplace_back("units",
                     fmt::format("computed {} of {:.4g} chosen neurons a token", shares, units->neurons));
  if (units->alone) lines.emplace_back("", alone_text(*units));
  for (const UnitTierFigures& tier : units->tiers) {
    if (tier.neurons_of_unit.size() > 1 && tier.computed_share > 0)
      lines.emplace_back("", load_text(tier, units->window));
  }
  lines.emplace_back("", beside_text(units->tiers));
  if (idle) lines.emplace_back("idle", idle_text(*idle));
  return lines;
}

}  // namespace tierd
