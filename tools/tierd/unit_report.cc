#include "tools/tierd/unit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/layout/cut.h"
#include "tools/tierd/report_numbers.h"

namespace tierd {
namespace {

using nlohmann::json;

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

// Returns NULL where the tier has one unit, or where no window is complete.
json imbalance_json(size_t units, uint64_t windows, double sum) {
  if (units < 2 || windows == 0) return nullptr;
  return per(sum, windows);
}

json sites_json(const Runtime& runtime, const std::vector<ComputingTier>& tiers) {
  json list = json::array();
  const SiteTable& sites = runtime.plan().model.sites;
  for (SiteId s = 0; s < sites.size(); ++s) {
    const SiteLoad& load = runtime.scheduler().loads().sites()[s];
    json of_tiers = json::array();
    for (size_t t = 0; t < tiers.size(); ++t) {
      json neurons = json::array(), ms = json::array();
      for (const UnitId unit : tiers[t].units) {
        neurons.push_back(load.units[unit].neurons);
        ms.push_back(per(static_cast<double>(load.units[unit].ns) * kMs, load.passes));
      }
      const TierWork& work = load.tiers[t];
      of_tiers.push_back(
          {{"tier", tiers[t].name},
           {"neurons", neurons},
           {"ms", ms},
           {"slowest_ms", per(static_cast<double>(work.slowest_ns) * kMs, load.passes)},
           {"windows", work.windows},
           {"imbalance", imbalance_json(tiers[t].units.size(), work.windows, work.imbalance_sum)}});
    }
    list.push_back({{"site", sites[s].name}, {"passes", load.passes}, {"tiers", of_tiers}});
  }
  return list;
}

uint64_t steps_of(const Runtime& runtime) {
  uint64_t steps = 0;
  for (const SiteLoad& load : runtime.scheduler().loads().sites()) steps = std::max(steps, load.passes);
  return steps;
}

// Returns "load of ndp: 10 to 30 neurons a token and unit; imbalance 1.62 as executed (...)".
std::string load_text(const json& tier, const json& units) {
  const auto& each = tier["neurons_of_unit"];
  const auto least = std::ranges::min(each.get<std::vector<double>>());
  const auto most = std::ranges::max(each.get<std::vector<double>>());
  const auto name = tier["tier"].get<std::string>();
  std::string text = fmt::format("load of {}: {:.4g} to {:.4g} neurons a token and unit", name, least, most);
  if (tier["imbalance"].is_null()) return text;
  return text + fmt::format("; imbalance {:.3g} as executed (most / mean, a site and {} tokens; {} windows)",
                            tier["imbalance"].get<double>(), units["window"].get<uint32_t>(),
                            tier["windows"].get<uint64_t>());
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

// Returns NULL, unless one tier has computed all neurons that the balancer could have assigned.
json alone_json(const Runtime& runtime, const json& tiers) {
  const auto computes_all = [](const json& tier) { return tier["computed_share"] == 1.0; };
  const auto alone = std::ranges::find_if(tiers, computes_all);
  if (tiers.size() < 2 || alone == tiers.end()) return nullptr;
  const auto name = (*alone)["tier"].get<std::string>();
  const std::string key = runtime.plan().tiers.find(name)->key("capacity");
  return {{"tier", name}, {"remedy", fmt::format("--set {}={}", key, smaller_capacity(runtime, name))}};
}

std::string alone_text(const json& units) {
  const auto name = units["alone"]["tier"].get<std::string>();
  std::string others;
  for (const json& tier : units["tiers"]) {
    if (tier["tier"] != name) others += (others.empty() ? "" : " or ") + tier["tier"].get<std::string>();
  }
  return fmt::format("{0} holds every neuron: no unit of {1} computes one; give {0} less: {2}", name, others,
                     units["alone"]["remedy"].get<std::string>());
}

std::string beside_text(const json& tiers) {
  std::string token, layer;
  for (const json& tier : tiers) {
    const auto count = tier["neurons_of_unit"].size();
    token += fmt::format("{}{} {:.3g} ms", token.empty() ? "" : " beside ", tier["tier"].get<std::string>(),
                         tier["slowest_ms"].get<double>());
    if (count > 1)
      token +=
          fmt::format(" (the slowest of {} in each pass; mean {:.3g})", count, tier["mean_ms"].get<double>());
    layer += fmt::format("{}{:.3g}", layer.empty() ? "" : " beside ", tier["layer_ms"].get<double>());
  }
  return fmt::format("computing a token: {}; a layer: {}", token, layer);
}

}  // namespace

json units_json(const Runtime& runtime) {
  if (runtime.plan().tiers.topology.units.size() < 2) return nullptr;
  const std::vector<ComputingTier> tiers = computing_tiers(runtime);
  const uint64_t steps = steps_of(runtime);
  std::vector<TierSums> sums;
  double chosen = 0;
  for (size_t t = 0; t < tiers.size(); ++t) {
    sums.push_back(sums_of(runtime, t, tiers[t]));
    chosen += static_cast<double>(sums.back().chosen);
  }
  json list = json::array();
  const uint64_t layers = runtime.plan().store.manifest().config.n_layers;
  const auto ms = [&](uint64_t ns) { return per(static_cast<double>(ns) * kMs, steps); };
  for (size_t t = 0; t < tiers.size(); ++t) {
    json each = json::array();
    for (const uint64_t neurons : sums[t].of_unit) each.push_back(per(static_cast<double>(neurons), steps));
    list.push_back(
        {{"tier", tiers[t].name},
         {"computed_share", chosen == 0 ? 0 : static_cast<double>(sums[t].chosen) / chosen},
         {"neurons_of_unit", each},
         {"slowest_ms", ms(sums[t].slowest_ns)},
         {"mean_ms", per(ms(sums[t].ns), tiers[t].units.size())},
         {"layer_ms", per(ms(sums[t].layers_ns), layers)},
         {"windows", sums[t].windows},
         {"imbalance", imbalance_json(tiers[t].units.size(), sums[t].windows, sums[t].imbalance_sum)}});
  }
  return {{"steps", steps},
          {"window", runtime.scheduler().loads().window()},
          {"neurons", per(chosen, steps)},
          {"alone", alone_json(runtime, list)},
          {"tiers", list},
          {"sites", sites_json(runtime, tiers)}};
}

json idle_json(const Runtime& runtime) {
  const IdleCounters idle = runtime.scheduler().idle();
  if (idle.windows == 0) return nullptr;
  const uint64_t steps = steps_of(runtime);
  const auto each = [&](uint64_t count) { return per(static_cast<double>(count), steps); };
  return {{"windows", each(idle.windows)},
          {"ms", each(idle.ns) * kMs},
          {"moves", each(idle.moves)},
          {"neurons", each(idle.neurons)},
          {"bytes", each(idle.bytes)},
          {"move_ms", each(idle.move_ns) * kMs},
          {"hidden_ms", each(idle.hidden_ns) * kMs},
          {"hidden_share", per(static_cast<double>(idle.hidden_ns), idle.move_ns)}};
}

std::vector<std::pair<std::string, std::string>> unit_lines(const json& report) {
  const json& units = report["units"];
  std::vector<std::pair<std::string, std::string>> lines;
  if (units.is_null() || units["steps"].get<uint64_t>() == 0) return lines;
  std::string shares;
  for (const json& tier : units["tiers"]) {
    shares += fmt::format("{}{} {:.3g} %", shares.empty() ? "" : ", ", tier["tier"].get<std::string>(),
                          100 * tier["computed_share"].get<double>());
  }
  lines.emplace_back("units", fmt::format("computed {} of {:.4g} chosen neurons a token", shares,
                                          units["neurons"].get<double>()));
  if (!units["alone"].is_null()) lines.emplace_back("", alone_text(units));
  for (const json& tier : units["tiers"]) {
    if (tier["neurons_of_unit"].size() > 1 && tier["computed_share"].get<double>() > 0)
      lines.emplace_back("", load_text(tier, units));
  }
  lines.emplace_back("", beside_text(units["tiers"]));
  const json& idle = report["idle_windows"];
  if (idle.is_null()) return lines;
  std::string moved = "; nothing was moved in them";
  if (idle["moves"].get<double>() > 0) {
    moved =
        fmt::format("; {:.3g} neurons a token moved in them ({}), {:.3g} % of the moves' {:.3g} ms hidden",
                    idle["neurons"].get<double>(), size_text(idle["bytes"]),
                    100 * idle["hidden_share"].get<double>(), idle["move_ms"].get<double>());
  }
  lines.emplace_back("idle", fmt::format("{:.3g} windows a token, {:.3g} ms, in which fetching delays no "
                                         "unit{}",
                                         idle["windows"].get<double>(), idle["ms"].get<double>(), moved));
  return lines;
}

}  // namespace tierd
