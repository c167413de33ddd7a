// Checks quantizers and balancers: a number below a bound for each neuron of a set or of an edition.
#include <fmt/format.h>

#include <functional>
#include <vector>

#include "core/kernel/active_set.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/set_view.h"
#include "tools/tier/conform/simulated_core.h"
#include "tools/tier/conform/suites.h"

namespace tierd {
namespace {

constexpr const char* kLevels = "choose: an edition that the site has, for each neuron";
constexpr const char* kUnits = "assign: an existing unit for each neuron";
constexpr const char* kNeeds = "caps: known ones";
constexpr uint32_t kKnownNeeds = TIERD_LEVELS_NEEDS_SCORES;
static_assert(kKnownNeeds == TIERD_BALANCER_NEEDS_SCORES);
constexpr const char* kMoves = "rebalance: existing editions and units, ascending neurons";
constexpr const char* kHomes = "place: an existing unit for each neuron of the edition";

// A question to an instance, in a world of sites and units: `ask(subject, numbers)` writes the numbers of n
// neurons, each below the bound.
template <class Table>
struct Question {
  const char* rule;
  uint32_t n;
  uint32_t bound;
  std::function<Status(Subject<Table>&, uint8_t* numbers)> ask;
};

// Asks two instances the same questions, and a third one in between. `after(subject, sites, topology, site)`
// is called after each site and adds to the fingerprint.
template <class Table, class Draw, class After>
void check_numbers(const StrategyChoice& choice, const SuiteOptions& options, Report& report, Draw draw,
                   After after) {
  for (uint32_t world = 0; world < options.worlds; ++world) {
    Random random(options.seed * 1000 + world);
    const SiteTable sites = in_several_editions(draw_sites(world, random));
    const PluginWorld::Machine machine{.topology = Topology::over_store(1 + random.below(4))};
    const PluginWorld same(sites, options.seed, naive_linear, machine);
    const PluginWorld another(sites, ~options.seed, naive_linear, machine);
    const auto first = Subject<Table>::make(choice, same, options, report);
    const auto second = Subject<Table>::make(choice, same, options, report);
    const auto other = Subject<Table>::make(choice, another, options, report);
    if (first == nullptr || second == nullptr || other == nullptr) continue;
    uint32_t caps = 0;
    if (!check_answered(caps_of(first->strategy, caps), report)) continue;
    report.check(kNeeds, (caps & ~kKnownNeeds) == 0, [&] { return fmt::format("caps {:#x}", caps); });
    Fingerprint of_first, of_second, of_other;
    const auto answer = [&](const Question<Table>& question, Subject<Table>& subject,
                            Fingerprint& fingerprint) {
      Guarded<uint8_t> numbers(question.n);
      if (!check_answered(question.ask(subject, numbers.data()), report)) return false;
      report.check(kWithin, numbers.intact(), [] { return "more numbers than neurons"; });
      for (uint32_t i = 0; i < question.n; ++i) {
        report.check(question.rule, numbers[i] < question.bound,
                     [&] { return fmt::format("{} of {} at place {}", numbers[i], question.bound, i); });
        fingerprint.add(numbers[i]);
      }
      return true;
    };
    for (uint32_t step = 0; step < options.steps; ++step) {
      for (SiteId site = 0; site < sites.size(); ++site) {
        const uint32_t n = sites[site].n;
        const bool all = random.below(4) == 0;
        std::vector<uint32_t> neurons = draw_set(n, random);
        std::vector<float> scores(random.below(3) == 0 ? 0 : all ? n : neurons.size());
        for (float& score : scores) score = random.symmetric();
        const ActiveSet set = all ? ActiveSet::all(n, std::move(scores))
                                  : ActiveSet::of(std::move(neurons), {}, std::move(scores));
        const tierd_set_view view = set_view(site, set, 1 + random.below(4), TIERD_SET_PREDICTED);
        for (const Question<Table>& question : draw(same, site, view)) {
          if (!answer(question, *first, of_first) ||
              (random.below(2) == 0 && !answer(question, *other, of_other)) ||
              !answer(question, *second, of_second)) {
            return;
          }
        }
        of_first.add(after(*first, sites, machine.topology, site));
        of_second.add(after(*second, sites, machine.topology, site));
      }
    }
    report.check(kSame, of_first == of_second,
                 [&] { return fmt::format("world {} of seed {}", world, options.seed); });
  }
}

}  // namespace

void check_quantizer(const StrategyChoice& choice, const SuiteOptions& options, Report& report) {
  using Table = tierd_levels_1;
  check_numbers<Table>(
      choice, options, report,
      [](const PluginWorld& world, SiteId site, const tierd_set_view& set) {
        const auto choose = [&set](Subject<Table>& quantizer, uint8_t* level) {
          return quantizer.strategy.call(&Table::choose, "choose", &set, level);
        };
        return std::vector<Question<Table>>{{kLevels, set.n, world.views()[site]->n_editions, choose}};
      },
      [](Subject<Table>&, const SiteTable&, const Topology&, SiteId) { return uint64_t{0}; });
}

void check_balancer(const StrategyChoice& choice, const SuiteOptions& options, Report& report) {
  using Table = tierd_balancer_1;
  check_numbers<Table>(
      choice, options, report,
      [](const PluginWorld& world, SiteId site, const tierd_set_view& set) {
        const auto units = static_cast<uint32_t>(world.unit_views().size());
        const uint32_t edition = world.views()[site]->editions[0];
        const auto place = [edition](Subject<Table>& balancer, uint8_t* home) {
          return balancer.strategy.call(&Table::place, "place", edition, home);
        };
        const auto assign = [&set](Subject<Table>& balancer, uint8_t* unit) {
          return balancer.strategy.call(&Table::assign, "assign", &set, unit);
        };
        return std::vector<Question<Table>>{{kHomes, world.edition_views()[edition]->n, units, place},
                                            {kUnits, set.n, units, assign}};
      },
      [&](Subject<Table>& balancer, const SiteTable& sites, const Topology& topology, SiteId site) {
        const auto moves = wanted_homes(balancer.strategy, site, sites.editions, topology);
        report.check(kMoves, moves.ok(), [&] { return moves.error().line(); });
        Fingerprint fingerprint;
        if (!moves.ok()) return fingerprint.value();
        for (const auto& [memory, wanted] : *moves) {
          fingerprint.add(uint64_t{memory} << 32 | wanted.edition);
          for (const uint32_t neuron : wanted.neurons) fingerprint.add(neuron);
        }
        return fingerprint.value();
      });
}

}  // namespace tierd
