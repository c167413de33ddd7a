#include "tools/tier/compare/site_uses.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/store/manifest.h"

namespace tierd {
namespace {

using nlohmann::json;

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// The counts of measured passes, of one or more sites.
struct Recall {
  SiteUse use;
  uint64_t neurons = 0;  // times rows

  void add(const SiteUse& other, uint32_t n) {
    use.measured_rows = std::max(use.measured_rows, other.measured_rows);
    use.predicted += other.predicted;
    use.active += other.active;
    use.missed += other.missed;
    use.mass += other.mass;
    use.missed_mass += other.missed_mass;
    neurons += other.measured_rows * n;
  }
  json to_json(const std::string& name) const {
    return {{"site", name},
            {"rows", use.measured_rows},
            {"active", share(use.active, neurons)},
            {"predicted", share(use.predicted, neurons)},
            {"recall", use.recall()},
            {"precision", use.precision()},
            {"false_negatives", 1 - use.recall()},
            {"false_positives", share(use.predicted - (use.active - use.missed), neurons - use.active)},
            {"missed_mass", use.missed_share()}};
  }
};

// Calls `each(site, use)` for every site that was measured.
template <class Each>
void for_each_measured(const Runtime& run, Each each) {
  const SiteTable& sites = run.plan().model.sites;
  for (SiteId s = 0; s < sites.size(); ++s) {
    const SiteUse& use = run.scheduler().use()[s];
    if (use.measured_rows != 0) each(sites[s], use);
  }
}

json with_sum(json list, const Runtime& run) {
  if (list.empty()) return list;
  Recall all;
  for_each_measured(run, [&](const Site& site, const SiteUse& use) { all.add(use, site.n); });
  list.push_back(all.to_json("all"));
  return list;
}

}  // namespace

json measured_sites(const Runtime& run) {
  json list = json::array();
  for_each_measured(run, [&](const Site& site, const SiteUse& use) {
    Recall of;
    of.add(use, site.n);
    list.push_back(of.to_json(site.name));
  });
  return with_sum(std::move(list), run);
}

json measured_operators(const Runtime& run) {
  std::map<uint16_t, Recall> operators;
  for_each_measured(run,
                    [&](const Site& site, const SiteUse& use) { operators[site.op_group].add(use, site.n); });
  json list = json::array();
  for (const auto& [group, of] : operators)
    list.push_back(of.to_json(fmt::format("all {}", name(static_cast<OpGroup>(group)))));
  return with_sum(std::move(list), run);
}

}  // namespace tierd
