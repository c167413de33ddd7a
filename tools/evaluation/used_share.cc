#include "tools/evaluation/used_share.h"

#include <fmt/format.h>

#include "core/report/figure_json.h"

namespace tierd {

UsedCounts used_counts(const Runtime& run) {
  UsedCounts counts;
  const SiteTable& sites = run.plan().model.sites;
  for (SiteId s = 0; s < sites.size(); ++s) {
    const Site& site = sites[s];
    const SiteUse& use = run.scheduler().use()[s];
    if (site.set != Site::Set::predicted || !site.added || use.rows == 0) continue;
    const auto of_site = static_cast<double>(use.rows) * site.n;
    const double bytes = sites.best_of(s).slot_bytes;
    counts.used += static_cast<double>(use.used);
    counts.all += of_site;
    counts.used_bytes += static_cast<double>(use.used_bytes);
    counts.all_bytes += of_site * bytes;
  }
  return counts;
}

UsedCounts operator-(const UsedCounts& after, const UsedCounts& before) {
  return {after.used - before.used, after.all - before.all, after.used_bytes - before.used_bytes,
          after.all_bytes - before.all_bytes};
}

std::optional<UsedFigures> used_figures(const UsedCounts& counts, const StrategyConfig& predictor) {
  if (!counts.any()) return std::nullopt;
  UsedFigures used{.neurons = counts.neuron_share(), .bytes = counts.byte_share(), .asked = {}};
  for (const Setting& setting : predictor.settings) used.asked[setting.key] = setting.value;
  return used;
}

std::string used_text(const UsedFigures& used, const std::string& predictor) {
  std::string text =
      fmt::format("{:.1f} % of the neurons and {:.1f} % of the bytes of what predictor {} may leave out",
                  100 * used.neurons, 100 * used.bytes, predictor);
  for (const auto& [key, setting] : used.asked) {
    const nlohmann::json value = figures::value_json(setting);
    text += fmt::format("{}{} = {}", key == used.asked.begin()->first ? "; asked for: " : ", ", key,
                        value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

}  // namespace tierd
