// Quantizers and balancers: a number for each neuron of a set, below a bound.
#include <fmt/format.h>

#include "core/kernel/active_set.h"
#include "core/kernel/set_view.h"
#include "tools/tier-conform/simulated_core.h"
#include "tools/tier-conform/suites.h"

namespace tierd {
namespace {

// Asks two instances the same, with a third one between them: `ask(subject, site, set, units, numbers)`. The
// numbers have to be below `bound_of(site, units)`.
template <class Table, class BoundOf, class Ask>
void check_numbers(const StrategyChoice& choice, const SuiteOptions& options, Report& report,
                   const char* rule, BoundOf bound_of, Ask ask) {
  for (uint32_t world = 0; world < options.worlds; ++world) {
    Random random(options.seed * 1000 + world);
    const SiteTable sites = in_several_editions(draw_sites(world, random));
    const PluginWorld same(sites, options.seed, naive_linear), another(sites, ~options.seed, naive_linear);
    const auto first = Subject<Table>::make(choice, same, options, report);
    const auto second = Subject<Table>::make(choice, same, options, report);
    const auto other = Subject<Table>::make(choice, another, options, report);
    if (first == nullptr || second == nullptr || other == nullptr) continue;
    Fingerprint of_first, of_second, of_other;
    for (uint32_t step = 0; step < options.steps; ++step) {
      for (SiteId site = 0; site < sites.size(); ++site) {
        const uint32_t n = sites[site].n;
        const ActiveSet set = random.below(4) == 0 ? ActiveSet::all(n) : ActiveSet::of(draw_set(n, random));
        const tierd_set_view view = set_view(site, set, 1 + random.below(4), TIERD_SET_PREDICTED);
        const uint32_t units = 1 + random.below(4);
        const uint32_t bound = bound_of(*same.views()[site], units);
        const auto answer = [&](Subject<Table>& subject, Fingerprint& fingerprint) {
          Guarded<uint8_t> numbers(set.size());
          if (!check_answered(ask(subject, *same.views()[site], view, units, numbers.data()), report))
            return false;
          report.check(kWithin, numbers.intact(), [] { return "more numbers than neurons"; });
          for (uint32_t i = 0; i < set.size(); ++i) {
            report.check(rule, numbers[i] < bound,
                         [&] { return fmt::format("{} of {} for neuron {}", numbers[i], bound, set[i]); });
            fingerprint.add(numbers[i]);
          }
          return true;
        };
        if (!answer(*first, of_first) || (random.below(2) == 0 && !answer(*other, of_other)) ||
            !answer(*second, of_second)) {
          return;
        }
      }
    }
    report.check(kSame, of_first == of_second,
                 [&] { return fmt::format("world {} of seed {}", world, options.seed); });
  }
}

}  // namespace

void check_quantizer(const StrategyChoice& choice, const SuiteOptions& options, Report& report) {
  check_numbers<tierd_quantizer_1>(
      choice, options, report, "choose: an edition that the site has, for each neuron",
      [](const tierd_site_view& site, uint32_t) { return site.n_editions; },
      [](Subject<tierd_quantizer_1>& quantizer, const tierd_site_view& site, const tierd_set_view& set,
         uint32_t, uint8_t* level) {
        return quantizer.strategy.call(&tierd_quantizer_1::choose, "choose", &site, &set, level);
      });
}

void check_balancer(const StrategyChoice& choice, const SuiteOptions& options, Report& report) {
  check_numbers<tierd_balancer_1>(
      choice, options, report, "assign: a unit that there is, for each neuron",
      [](const tierd_site_view&, uint32_t units) { return units; },
      [](Subject<tierd_balancer_1>& balancer, const tierd_site_view&, const tierd_set_view& set,
         uint32_t units, uint8_t* unit) {
        return balancer.strategy.call(&tierd_balancer_1::assign, "assign", &set, units, unit);
      });
}

}  // namespace tierd
