#include "tools/tier/compare/site_uses.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/store/manifest.h"

namespace tierd {
namespace {

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
  SiteFigures figures(std::string name) const {
    return {.site = std::move(name),
            .rows = use.measured_rows,
            .active = share(use.active, neurons),
            .predicted = share(use.predicted, neurons),
            .recall = use.recall(),
            .precision = use.precision(),
            .false_negatives = 1 - use.recall(),
            .false_positives = share(use.predicted - (use.active - use.missed), neurons - use.active),
            .missed_mass = use.missed_share()};
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

std::vector<SiteFigures> with_sum(std::vector<SiteFigures> list, const Runtime& run) {
  if (list.empty()) return list;
  Recall all;
  for_each_measured(run, [&](const Site& site, const SiteUse& use) { all.add(use, site.n); });
  list.push_back(all.figures("all"));
  return list;
}

}  // namespace

std::vector<SiteFigures> measured_sites(const Runtime& run) {
  std::vector<SiteFigures> list;
  for_each_measured(run, [&](const Site& site, const SiteUse& use) {
    Recall of;
    of.add(use, site.n);
    list.push_back(of.figures(site.name));
  });
  return with_sum(std::move(list), run);
}

std::vector<SiteFigures> measured_operators(const Runtime& run) {
  std::map<uint16_t, Recall> operators;
  for_each_measured(run,
                    [&](const Site& site, const SiteUse& use) { operators[site.op_group].add(use, site.n); });
  std::vector<SiteFigures> list;
  for (const auto& [group, of] : operators)
    list.push_back(of.figures(fmt::format("all {}", name(static_cast<OpGroup>(group)))));
  return with_sum(std::move(list), run);
}

}  // namespace tierd
