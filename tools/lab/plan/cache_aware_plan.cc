#include "tools/lab/plan/cache_aware_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.h"
#include "core/run/plugin_tensors.h"

namespace tierd {

double number_of(const std::vector<Setting>& settings, std::string_view key, double otherwise) {
  for (const Setting& setting : settings) {
    if (setting.key != key) continue;
    if (const auto* number = std::get_if<double>(&setting.value)) return *number;
    if (const auto* whole = std::get_if<int64_t>(&setting.value)) return static_cast<double>(*whole);
  }
  return otherwise;
}

Status read_rates(const RunPlan& plan, std::vector<ChannelOperator>& operators) {
  const std::string& path = plan.config.predictor.tensors;
  if (path.empty() || path == ModelTensors::kName) return {};
  TIERD_ASSIGN(const PluginTensorFile file, PluginTensorFile::open(path));
  TIERD_ASSIGN(const auto tables, file.read());
  for (const StoredSite& site : plan.store.manifest().sites) {
    if (!is_cut_into<Columns>(site.cut) || site.layer != plan.store.manifest().config.n_layers / 2) continue;
    if (site.expert != kNoExpert && site.expert != 0) continue;
    const auto of = std::ranges::find(operators, std::string(name(site.group)), &ChannelOperator::name);
    const auto rates = std::ranges::find(tables->tensors, site.name + ".rates", &PluginTensors::Tensor::name);
    if (of == operators.end() || rates == tables->tensors.end() || rates->data.size() != of->channels)
      continue;
    of->rates = rates->data;
  }
  return {};
}

namespace {

// `of_experts` tells of the channels of experts, for a mixture.
std::string mask_text(const PlanFigures& found, std::string_view of_experts) {
  const CacheAwareFigures& aware = found.cache_aware;
  std::string text = fmt::format(
      "A cache-aware mask, with {:.1f} % of the channels resident{}{}: {:.3g} tokens/s, {} a token in {:.1f} "
      "thousand reads;\n  of the inputs' energy {:.1f} % are lost, by the largest {:.1f} %\n",
      100 * aware.kept, of_experts, found.by_rate ? ", the most used ones" : "",
      aware.steady_tokens_per_second, format_bytes(aware.flash_bytes_per_token), 1e-3 * aware.reads_per_token,
      100 * aware.energy_lost, 100 * aware.energy_lost_by_largest);
  if (!found.by_rate)
    text += "  (tier-convert --order TABLES makes a store that has the most used channels first)\n";
  return text;
}

}  // namespace

void add_cache_aware(PlanFigures& found, const CacheAwareCost& cost, const CacheAwareRun& run) {
  found.cache_aware = {.kept = cost.kept,
                       .kept_of_experts = cost.kept_of_experts,
                       .reads_per_token = cost.reads,
                       .flash_bytes_per_token = cost.flash_bytes,
                       .disk_ms = cost.disk * 1e3,
                       .compute_ms = cost.compute * 1e3,
                       .choosing_ms = cost.choosing * 1e3,
                       .energy_lost = cost.lost,
                       .energy_lost_by_largest = cost.lost_of_largest,
                       .steady_tokens_per_second = 1 / cost.steady_token};
  found.sparsity = run.sparsity;
  found.missing_ahead = run.ahead;
  found.by_rate = run.by_rate;
}

std::string cache_aware_text(const DensePlan& found) {
  return mask_text(found, "");
}
std::string cache_aware_text(const MixturePlan& found) {
  return mask_text(
      found, fmt::format(" of attention and {:.1f} % of experts", 100 * found.cache_aware.kept_of_experts));
}

std::string cache_aware_settings_text(const PlanFigures& found) {
  return fmt::format(
      "--set predictor.sparsity={:.3g} --set predictor.mask=cache-aware --set predictor.missing_ahead={} "
      "--set "
      "predictor.ahead=none --set cache.name=pinned",
      found.sparsity, found.missing_ahead);
}

}  // namespace tierd
