#include "core/strategy/strategy_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/kernel/plugin_answer.h"
#include "core/kernel/set_view.h"
#include "core/strategy/plugin_file.h"

namespace tierd {
namespace {

// Checks that a predictor that needs true sets gets them.
Status check_truth(const Strategy<tierd_predictor_1>& predictor, uint32_t caps, uint32_t measure_every) {
  const auto lacks = [&](std::string_view every) {
    return Error{Code::unsupported, fmt::format("predictor '{}'", predictor.name),
                 fmt::format("needs the true active sets; set scheduler.measure_every to {}", every)};
  };
  if ((caps & TIERD_PREDICTOR_NEEDS_ALL_TRUTH) != 0 && measure_every != 1) return lacks("1");
  if ((caps & TIERD_PREDICTOR_NEEDS_TRUTH) != 0 && measure_every == 0) return lacks("a number of steps");
  return {};
}

}  // namespace

Status StrategySet::ask_reads_x(Strategy<tierd_predictor_1>& predictor, uint32_t caps,
                                std::vector<uint8_t>& reads_x) const {
  reads_x.assign(sites().size(), 0);
  if ((caps & TIERD_PREDICTOR_NEEDS_X) == 0) return {};
  for (SiteId s = 0; s < sites().size(); ++s) {
    if (sites()[s].given()) continue;
    reads_x[s] = 1;
    if (predictor.table.reads_x == nullptr) continue;
    int answer = 0;
    TIERD_TRY(
        predictor.watch("reads_x", [&] { return answer = predictor.table.reads_x(predictor.self, s); }));
    reads_x[s] = answer != 0 ? 1 : 0;
  }
  return {};
}

// Returns the sites at which quantizer or balancer have a choice and rank neurons by score. Error:
// unsupported, if the predictor gives no scores.
Result<std::vector<uint8_t>> StrategySet::scored(Strategy<tierd_predictor_1>& predictor,
                                                 Strategy<tierd_levels_1>& quantizer,
                                                 Strategy<tierd_balancer_1>& balancer) const {
  uint32_t of_predictor = 0, of_quantizer = 0, of_balancer = 0;
  TIERD_TRY(caps_of(predictor, of_predictor));
  TIERD_TRY(caps_of(quantizer, of_quantizer));
  TIERD_TRY(caps_of(balancer, of_balancer));
  const bool by_level = (of_quantizer & TIERD_LEVELS_NEEDS_SCORES) != 0;
  const bool by_unit = (of_balancer & TIERD_BALANCER_NEEDS_SCORES) != 0 && topology_.units.size() > 1;
  std::vector<uint8_t> scored(sites().size(), 0);
  for (SiteId s = 0; s < sites().size(); ++s) {
    const Site& site = sites()[s];
    const bool level = by_level && site.editions.size() > 1;
    if (site.given() || !(level || by_unit)) continue;
    scored[s] = 1;
    if (site.chosen() || (of_predictor & TIERD_PREDICTOR_SCORES) != 0) continue;
    const StrategyBase& who = level ? static_cast<StrategyBase&>(quantizer) : balancer;
    return Error{Code::unsupported, fmt::format("{} '{}'", who.kind, who.name),
                 fmt::format("ranks neurons by their scores, but predictor '{}' has none", predictor.name)};
  }
  return scored;
}

Result<bool> StrategySet::rows_apart() {
  uint32_t of_predictor = 0, of_quantizer = 0;
  TIERD_TRY(caps_of(strategies_.predictor, of_predictor));
  TIERD_TRY(caps_of(strategies_.quantizer, of_quantizer));
  const bool has_choice =
      std::ranges::any_of(sites(), [](const Site& site) { return site.editions.size() > 1; });
  if (has_choice && (of_quantizer & TIERD_LEVELS_NEEDS_SCORES) != 0) return false;
  if (has_choice && quantizer_->choice().plugin->lossy != 0) return false;
  return (of_predictor & TIERD_PREDICTOR_LOSSY) == 0 || (of_predictor & TIERD_PREDICTOR_ROWS_APART) != 0;
}

StrategySet::StrategySet(const SiteTable& sites, const Options& options)
    : topology_(options.topology),
      placement_(static_cast<uint32_t>(options.topology.units.size())),
      deadline_ns_(options.deadline_ns),
      running_(options.running),
      measure_every_(options.measure_every),
      caches_(options.topology.memories.size()) {
  for (size_t m = 0; m <= caches_.size(); ++m) {
    worlds_.emplace_back(sites, options.seed, options.linear,
                         PluginWorld::Machine{topology_, &placement_, static_cast<MemoryId>(m)});
  }
  strategies_.caches.resize(caches_.size());
  strategies_.heat_of.resize(sites.size());
  for (PluginWorld& world : worlds_) world.set_heat(&strategies_.heat_of);
}

Result<std::unique_ptr<StrategySet>> StrategySet::create(const StrategyChoices& choices,
                                                         const SiteTable& sites, const Options& options) {
  std::unique_ptr<StrategySet> set(new StrategySet(sites, options));
  Strategies& s = set->strategies_;
  const PluginWorld& world = set->worlds_.front();
  TIERD_TRY(set->make_predictor(choices.predictor, s.predictor, s.reads_x, set->predictor_));
  if (choices.heat.plugin != nullptr) {
    TIERD_TRY(set->make_heat(choices.heat, s.heat, set->heat_));
  } else {
    TIERD_ASSIGN(s.heat, set->heat_of_predictor());
  }
  TIERD_TRY(set->make(choices.quantizer, world, s.quantizer, set->quantizer_));
  TIERD_TRY(set->make(choices.balancer, world, s.balancer, set->balancer_));
  TIERD_ASSIGN(s.scored, set->scored(s.predictor, s.quantizer, s.balancer));
  TIERD_TRY(set->ask_homes(s.balancer, set->placement_));
  for (const auto& [tier, choice] : choices.tier_caches) set->tiers_with_caches_.insert(tier);
  for (size_t m = 0; m < s.caches.size(); ++m) {
    const StrategyChoice& choice = choices.cache_of(set->topology_.memories[m].name);
    TIERD_TRY(set->make(choice, set->world_of(m), s.caches[m], set->caches_[m]));
  }
  return set;
}

template <class Table>
Status StrategySet::make(const StrategyChoice& choice, const PluginWorld& world, Strategy<Table>& strategy,
                         Instance& instance) const {
  TIERD_TRY(read_table(*choice.plugin, choice.origin, strategy.table));
  strategy.running = running_;
  strategy.lasting_name = lasting_name(fmt::format("{} '{}'", choice.plugin->kind, choice.plugin->name));
  {
    const PluginCalls::Scope scope(running_, strategy.lasting_name, "create");
    TIERD_ASSIGN(instance, StrategyInstance::create(choice, world));
  }
  strategy.kind = choice.plugin->kind;
  strategy.name = choice.plugin->name;
  strategy.self = instance->self();
  strategy.last_words = &instance->last_words();
  strategy.wishes = &instance->wishes();
  strategy.deadline_ns = deadline_ns_;
  return {};
}

Status StrategySet::make_predictor(const StrategyChoice& choice, Strategy<tierd_predictor_1>& strategy,
                                   std::vector<uint8_t>& reads_x, Instance& instance) const {
  TIERD_TRY(make(choice, worlds_.front(), strategy, instance));
  uint32_t caps = 0;
  TIERD_TRY(caps_of(strategy, caps));
  TIERD_TRY(check_truth(strategy, caps, measure_every_));
  return ask_reads_x(strategy, caps, reads_x);
}

Status StrategySet::make_heat(const StrategyChoice& choice, Strategy<tierd_heat_1>& strategy,
                              Instance& instance) const {
  if (const Status made = make(choice, worlds_.front(), strategy, instance); !made.ok()) {
    // The configuration names this plugin in [heat], not in a table of its kind.
    Error error = made.error();
    if (error.origin == *strategy.lasting_name) error.origin = fmt::format("heat '{}'", choice.plugin->name);
    return error;
  }
  strategy.kind = "heat";
  return {};
}

// Returns the heat ability of the predictor; without functions if it has none.
Result<Strategy<tierd_heat_1>> StrategySet::heat_of_predictor() const {
  Strategy<tierd_heat_1> heat;
  const StrategyChoice& choice = predictor_->choice();
  if (!offers_heat(*choice.plugin)) return heat;
  TIERD_TRY(read_table(*choice.plugin, choice.origin, heat.table));
  const Strategy<tierd_predictor_1>& predictor = strategies_.predictor;
  static_cast<StrategyBase&>(heat) = predictor;
  heat.kind = "heat";
  heat.calls = heat.ns = 0;
  return heat;
}

// One unit is the home of all neurons, and the balancer need not be called. An edition that is made of
// another one has the homes of that one.
Status StrategySet::ask_homes(Strategy<tierd_balancer_1>& balancer, Placement& placement) const {
  if (placement.units() == 1) return {};
  for (EditionId e = 0; e < sites().editions.size(); ++e) {
    const Edition& edition = sites().editions[e];
    if (edition.made_of != kNoEdition) {
      placement.place(e, placement.homes(edition.made_of));
      continue;
    }
    std::vector<uint8_t> homes(edition.n, 0);
    TIERD_TRY(balancer.call(&tierd_balancer_1::place, "place", e, homes.data()));
    for (const uint8_t unit : homes) {
      if (unit >= placement.units())
        return balancer.fault("place", fmt::format("unit {} of {}", unit, placement.units()));
    }
    placement.place(e, std::move(homes));
  }
  return {};
}

bool StrategySet::has_cache_of(std::string_view tier) const {
  for (size_t m = 0; m < caches_.size(); ++m) {
    if (has_cache_of(m, tier)) return true;
  }
  return false;
}

const StrategyInstance& StrategySet::instance(std::string_view kind, std::string_view tier) const {
  if (kind == "predictor") return *predictor_;
  if (kind == "quantizer") return *quantizer_;
  if (kind == "cache") {
    for (size_t m = 0; m < caches_.size(); ++m) {
      if (has_cache_of(m, tier)) return *caches_[m];
    }
    return *caches_.front();
  }
  if (kind == "heat") return heat_ != nullptr ? *heat_ : *predictor_;
  TIERD_CHECK(kind == "balancer");
  return *balancer_;
}

void StrategySet::set_residencies(const std::deque<Residency>& residencies) {
  TIERD_CHECK(residencies.size() == caches_.size());
  for (PluginWorld& world : worlds_) world.set_residencies(&residencies);
}

std::vector<uint32_t> StrategySet::at_home(size_t m) const {
  return placement_.at_home(sites().editions, topology_, static_cast<MemoryId>(m + 1));
}

// Returns the most slots that a cache may have: for neurons whose home is a unit that the memory feeds, or
// for all neurons if others may be fetched, too.
std::vector<uint32_t> StrategySet::most_slots(size_t m) const {
  if (strategies_.caches[m].table.idle == nullptr && strategies_.balancer.table.rebalance == nullptr)
    return at_home(m);
  std::vector<uint32_t> most;
  for (EditionId e = 0; e < sites().editions.size(); ++e)
    most.push_back(topology_.memories[m].holds(e) ? sites().editions[e].n : 0);
  return most;
}

// Divides the bytes in proportion to the neurons whose home is in each memory. If all of them fit, each arena
// gets exactly their bytes, and an even share of the rest if homes may change.
std::vector<uint64_t> StrategySet::divide(uint64_t bytes, MemoryId first, uint32_t n) const {
  if (n == 1) return {bytes};
  const std::vector<Edition>& editions = sites().editions;
  std::vector<uint64_t> parts;
  uint64_t all = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const std::vector<uint32_t> here = at_home(first - 1u + i);
    uint64_t& part = parts.emplace_back(0);
    for (EditionId e = 0; e < editions.size(); ++e) part += uint64_t{here[e]} * editions[e].slot_bytes;
    all += part;
  }
  if (bytes >= all) {
    const bool may_move = strategies_.balancer.table.rebalance != nullptr;
    for (uint64_t& part : parts) part += may_move ? (bytes - all) / n : 0;
    return parts;
  }
  for (uint64_t& part : parts)
    part = static_cast<uint64_t>(static_cast<double>(bytes) * static_cast<double>(part) /
                                 static_cast<double>(all));
  return parts;
}

void StrategySet::tell_bytes(std::span<const uint64_t> parts) {
  for (PluginWorld& world : worlds_) world.set_memory_bytes(parts);
}

Status StrategySet::fits(std::span<const uint64_t> parts, std::span<const uint64_t> present) {
  Strategy<tierd_predictor_1>& predictor = strategies_.predictor;
  if (predictor.quarantined()) return {};
  tell_bytes(parts);
  const Status answer = predictor.call_if(&tierd_predictor_1::fits, kFits);
  tell_bytes(present);
  return answer;
}

void StrategySet::tell_gap(MemoryId memory, uint64_t bytes) {
  for (PluginWorld& world : worlds_) world.set_gap_bytes(memory, bytes);
}

Result<std::vector<std::vector<uint32_t>>> StrategySet::share(const std::vector<uint64_t>& parts) {
  tell_bytes(parts);
  std::vector<std::vector<uint32_t>> slots;
  for (size_t m = 0; m < caches_.size(); ++m) {
    TIERD_ASSIGN(slots.emplace_back(), share(strategies_.caches[m], parts[m], most_slots(m)));
  }
  return slots;
}

Result<std::vector<uint32_t>> StrategySet::share(Strategy<tierd_cache_1>& cache, uint64_t bytes,
                                                 std::vector<uint32_t> most) const {
  std::vector<uint32_t> slots = most;
  TIERD_TRY(cache.call(&tierd_cache_1::share, "share", bytes, slots.data()));
  TIERD_TRY(check_split(cache, "share", sites(), bytes, most, slots));
  return slots;
}

Result<std::vector<std::vector<std::vector<uint32_t>>>> StrategySet::wanted() {
  std::vector<std::vector<std::vector<uint32_t>>> lists;
  for (size_t m = 0; m < caches_.size(); ++m) {
    std::vector<std::vector<uint32_t>>& of_cache = lists.emplace_back(sites().editions.size());
    TIERD_ASSIGN(const std::vector<WantedNeurons> all,
                 wanted_at_start(strategies_.caches[m], sites().editions, topology_.memories[m]));
    for (const WantedNeurons& wanted : all) of_cache[wanted.edition] = wanted.neurons;
    for (std::vector<uint32_t>& list : of_cache) std::sort(list.begin(), list.end());
  }
  return lists;
}

template <class Table>
Status StrategySet::replace(const StrategyChoice& choice, Strategy<Table>& strategy, Instance& instance) {
  Strategy<Table> next;
  Instance made;
  TIERD_TRY(make(choice, worlds_.front(), next, made));
  std::vector<uint8_t> scored;
  if constexpr (std::is_same_v<Table, tierd_balancer_1>) {
    TIERD_ASSIGN(scored, this->scored(strategies_.predictor, strategies_.quantizer, next));
    Placement placement(placement_.units());
    TIERD_TRY(ask_homes(next, placement));
    placement_ = std::move(placement);
  } else {
    TIERD_ASSIGN(scored, this->scored(strategies_.predictor, next, strategies_.balancer));
  }
  strategies_.scored = std::move(scored);
  strategy = std::move(next);
  instance = std::move(made);
  return {};
}

Status StrategySet::replace_predictor(const StrategyChoice& choice) {
  Strategy<tierd_predictor_1> next;
  std::vector<uint8_t> reads_x;
  Instance made;
  TIERD_TRY(make_predictor(choice, next, reads_x, made));
  TIERD_TRY(next.call_if(&tierd_predictor_1::fits, kFits));
  TIERD_ASSIGN(strategies_.scored, scored(next, strategies_.quantizer, strategies_.balancer));
  strategies_.predictor = std::move(next);
  strategies_.reads_x = std::move(reads_x);
  predictor_.swap(made);
  if (heat_ != nullptr) return {};
  // The strategy that kept the heat was replaced.
  for (std::vector<uint8_t>& heat : strategies_.heat_of) heat.clear();
  TIERD_ASSIGN(strategies_.heat, heat_of_predictor());
  return {};
}

Status StrategySet::swap_heat(const StrategyChoice& choice) {
  Strategy<tierd_heat_1> next;
  Instance made;
  TIERD_TRY(make_heat(choice, next, made));
  for (std::vector<uint8_t>& heat : strategies_.heat_of) heat.clear();
  strategies_.heat = std::move(next);
  heat_ = std::move(made);
  return {};
}

Status StrategySet::replace_caches(const StrategyChoice& choice, const std::vector<uint64_t>& parts,
                                   std::string_view tier) {
  std::vector<Strategy<tierd_cache_1>> next(caches_.size());
  std::vector<Instance> made(caches_.size());
  for (size_t m = 0; m < caches_.size(); ++m) {
    if (!has_cache_of(m, tier)) continue;
    const PluginWorld& world = world_of(m);
    TIERD_CHECK(world.residency() != nullptr);
    TIERD_TRY(make(choice, world, next[m], made[m]));
    std::vector<uint32_t> most;
    for (EditionId e = 0; e < sites().editions.size(); ++e) most.push_back(world.residency()->max_slots(e));
    TIERD_TRY(share(next[m], parts[m], std::move(most)));
    TIERD_TRY(hand_over(world, next[m]));
  }
  for (size_t m = 0; m < caches_.size(); ++m) {
    if (!has_cache_of(m, tier)) continue;
    strategies_.caches[m] = std::move(next[m]);
    caches_[m] = std::move(made[m]);
  }
  return {};
}

Status StrategySet::swap(StrategyChoice choice, const std::vector<uint64_t>& parts, std::string_view tier) {
  const std::string_view kind = choice.plugin->kind;
  Strategies& s = strategies_;
  if (kind == "predictor") return replace_predictor(choice);
  if (kind == "quantizer") return replace(choice, s.quantizer, quantizer_);
  if (kind == "balancer") return replace(choice, s.balancer, balancer_);
  TIERD_CHECK(kind == "cache");
  return replace_caches(choice, parts, tier);
}

// Reports the resident neurons to a new cache.
Status StrategySet::hand_over(const PluginWorld& world, Strategy<tierd_cache_1>& cache) const {
  const std::vector<Edition>& editions = world.sites().editions;
  std::vector<std::vector<uint32_t>> resident(editions.size());
  std::vector<tierd_set_view> sets;
  for (EditionId e = 0; e < editions.size(); ++e) {
    for (uint32_t neuron = 0; neuron < editions[e].n; ++neuron) {
      if (world.residency()->valid(e, neuron)) resident[e].push_back(neuron);
    }
    if (resident[e].empty()) continue;
    const auto n = static_cast<uint32_t>(resident[e].size());
    sets.push_back(edition_set(e, editions[e], resident[e].data(), n, 0, TIERD_SET_TRUE));
  }
  if (cache.table.adopt != nullptr) {
    std::vector<const tierd_set_view*> views;
    for (const tierd_set_view& set : sets) views.push_back(&set);
    return cache.call(&tierd_cache_1::adopt, "adopt", views.data(), static_cast<uint32_t>(views.size()));
  }
  for (const tierd_set_view& set : sets) {
    TIERD_TRY(cache.call_if(&tierd_cache_1::landed, "landed", set.edition, set.idx, set.n));
  }
  return {};
}

}  // namespace tierd
