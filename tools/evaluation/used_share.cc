#include "tools/evaluation/used_share.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>

namespace tierd {
namespace {

using nlohmann::json;

std::string asked_text(const json& asked) {
  std::string text;
  for (const auto& [key, value] : asked.items())
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key,
                        value.is_string() ? value.get<std::string>() : value.dump());
  return text;
}

}  // namespace

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

json used_json(const UsedCounts& counts, const StrategyConfig& predictor) {
  if (!counts.any()) return nullptr;
  json asked = json::object();
  for (const Setting& setting : predictor.settings)
    std::visit([&](const auto& value) { asked[setting.key] = value; }, setting.value);
  return {{"neurons", counts.neuron_share()}, {"bytes", counts.byte_share()}, {"asked", asked}};
}

std::string used_text(const json& used, const std::string& predictor) {
  return fmt::format(
      "{:.1f} % of the neurons and {:.1f} % of the bytes of what predictor {} may leave out{}{}",
      100 * used["neurons"].get<double>(), 100 * used["bytes"].get<double>(), predictor,
      used["asked"].empty() ? "" : "; asked for: ", asked_text(used["asked"]));
}

}  // namespace tierd
