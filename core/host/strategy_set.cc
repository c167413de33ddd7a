#include "core/host/strategy_set.h"

#include <fmt/format.h>

#include <utility>

#include "core/host/plugin_file.h"
#include "core/kernel/plugin_answer.h"

namespace tierd {
namespace {

constexpr uint32_t kCannotBeGiven =
    TIERD_PREDICTOR_NEEDS_X | TIERD_PREDICTOR_NEEDS_TRUTH | TIERD_PREDICTOR_NEEDS_ALL_TRUTH;

}  // namespace

Result<std::unique_ptr<StrategySet>> StrategySet::create(const StrategyChoices& choices,
                                                         const std::vector<Site>& sites, uint64_t seed,
                                                         uint64_t deadline_ns, LinearFunction linear) {
  std::unique_ptr<StrategySet> set(new StrategySet(sites, seed, deadline_ns, std::move(linear)));
  Strategies& s = set->strategies_;
  TIERD_TRY(set->make(choices.predictor, s.predictor, set->instances_.predictor));
  TIERD_TRY(set->make(choices.quantizer, s.quantizer, set->instances_.quantizer));
  TIERD_TRY(set->make(choices.cache, s.cache, set->instances_.cache));
  TIERD_TRY(set->make(choices.balancer, s.balancer, set->instances_.balancer));
  return set;
}

template <class Table>
Status StrategySet::make(const StrategyChoice& choice, Strategy<Table>& strategy,
                         std::unique_ptr<StrategyInstance>& instance) {
  TIERD_TRY(read_table(*choice.plugin, choice.origin, strategy.table));
  TIERD_ASSIGN(instance, StrategyInstance::create(choice, world_));
  strategy.kind = choice.plugin->kind;
  strategy.name = choice.plugin->name;
  strategy.self = instance->self();
  strategy.last_words = &instance->last_words();
  strategy.deadline_ns = deadline_ns_;
  if constexpr (std::is_same_v<Table, tierd_predictor_1>) {
    uint32_t caps = 0;
    TIERD_TRY(caps_of(strategy, caps));
    if ((caps & kCannotBeGiven) != 0) {
      return Error{Code::unsupported, fmt::format("predictor '{}'", strategy.name),
                   "needs the activations or the truth, which sites of axis 'row' do not have"};
    }
  }
  return {};
}

const StrategyInstance& StrategySet::instance(std::string_view kind) const {
  if (kind == "predictor") return *instances_.predictor;
  if (kind == "quantizer") return *instances_.quantizer;
  if (kind == "cache") return *instances_.cache;
  TIERD_CHECK(kind == "balancer");
  return *instances_.balancer;
}

Result<std::vector<uint32_t>> StrategySet::share(uint64_t bytes) {
  std::vector<uint32_t> most;
  const std::vector<Site>& sites = world_.sites();
  for (SiteId s = 0; s < sites.size(); ++s) most.push_back(sites[s].domain == s ? sites[s].n : 0);
  return share(strategies_.cache, bytes, std::move(most));
}

Result<std::vector<uint32_t>> StrategySet::share(Strategy<tierd_cache_1>& cache, uint64_t bytes,
                                                 std::vector<uint32_t> most) const {
  const std::vector<Site>& sites = world_.sites();
  std::vector<uint32_t> slots = most;
  TIERD_TRY(cache.call(&tierd_cache_1::share, "share", bytes, slots.data()));
  uint64_t used = 0;
  for (SiteId s = 0; s < sites.size(); ++s) {
    if (slots[s] > most[s]) {
      return cache.fault("share",
                         fmt::format("{} slots for {}, which can have {}", slots[s], sites[s].name, most[s]));
    }
    used += uint64_t{slots[s]} * sites[s].slot_bytes;
  }
  if (used > bytes) return cache.fault("share", fmt::format("{} bytes of {}", used, bytes));
  return slots;
}

Result<std::vector<std::vector<uint32_t>>> StrategySet::wanted() {
  std::vector<std::vector<uint32_t>> lists(world_.sites().size());
  TIERD_ASSIGN(std::vector<WantedAtStart> all, wanted_at_start(strategies_.cache, world_.sites()));
  for (WantedAtStart& wanted : all) lists[wanted.site] = std::move(wanted.neurons);
  return lists;
}

template <class Table>
Status StrategySet::replace(const StrategyChoice& choice, Strategy<Table>& strategy,
                            std::unique_ptr<StrategyInstance>& instance) {
  Strategy<Table> next;
  std::unique_ptr<StrategyInstance> made;
  TIERD_TRY(make(choice, next, made));
  strategy = std::move(next);
  instance = std::move(made);
  return {};
}

Status StrategySet::swap(StrategyChoice choice, uint64_t bytes) {
  const std::string_view kind = choice.plugin->kind;
  Strategies& s = strategies_;
  if (kind == "predictor") return replace(choice, s.predictor, instances_.predictor);
  if (kind == "quantizer") return replace(choice, s.quantizer, instances_.quantizer);
  if (kind == "balancer") return replace(choice, s.balancer, instances_.balancer);
  TIERD_CHECK(kind == "cache" && world_.residency() != nullptr);
  Strategy<tierd_cache_1> next;
  std::unique_ptr<StrategyInstance> made;
  TIERD_TRY(make(choice, next, made));
  std::vector<uint32_t> most;
  const std::vector<Site>& sites = world_.sites();
  for (SiteId site = 0; site < sites.size(); ++site) {
    most.push_back(sites[site].domain == site ? world_.residency()->max_slots(site) : 0);
  }
  TIERD_TRY(share(next, bytes, std::move(most)));
  TIERD_TRY(hand_over(next));
  s.cache = std::move(next);
  instances_.cache = std::move(made);
  return {};
}

// Tells a new cache what is where.
Status StrategySet::hand_over(Strategy<tierd_cache_1>& cache) const {
  const std::vector<Site>& sites = world_.sites();
  std::vector<std::vector<uint32_t>> resident(sites.size());
  std::vector<tierd_set_view> sets;
  for (SiteId site = 0; site < sites.size(); ++site) {
    if (sites[site].domain != site) continue;
    for (uint32_t neuron = 0; neuron < sites[site].n; ++neuron) {
      if (world_.residency()->valid(site, neuron)) resident[site].push_back(neuron);
    }
    if (resident[site].empty()) continue;
    tierd_set_view view{};
    view.size = sizeof view;
    view.site = site;
    view.n = static_cast<uint32_t>(resident[site].size());
    view.kind = TIERD_SET_TRUE;
    view.idx = resident[site].data();
    sets.push_back(view);
  }
  if (cache.table.adopt != nullptr) {
    std::vector<const tierd_set_view*> views;
    for (const tierd_set_view& set : sets) views.push_back(&set);
    return cache.call(&tierd_cache_1::adopt, "adopt", views.data(), static_cast<uint32_t>(views.size()));
  }
  for (const tierd_set_view& set : sets) {
    TIERD_TRY(cache.call_if(&tierd_cache_1::landed, "landed", set.site, set.idx, set.n));
  }
  return {};
}

}  // namespace tierd
