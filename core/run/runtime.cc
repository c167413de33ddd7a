#include "core/run/runtime.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "core/base/progress.h"
#include "core/base/units.h"
#include "core/run/runtime_names.h"

namespace tierd {

namespace {

// Returns the table of a strategy; `tier`: of a cache that the tier has of its own.
StrategyConfig& strategy_in(Config& config, std::string_view kind, const std::string& tier) {
  if (kind == "predictor") return config.predictor;
  if (kind == "heat") return config.heat;
  if (kind == "quantizer") return config.quantizer;
  if (kind == "balancer") return config.balancer;
  TIERD_CHECK(kind == "cache");
  return tier.empty() ? config.cache : config.tier(tier).cache;
}

// Returns the table of a tier, which exists in the configuration.
TierConfig& tier_in(Config& config, const std::string& name) {
  return *std::ranges::find(config.tiers, name, &TierConfig::name);
}

// Sums counters of memories or links by the first one between the same tiers in another table.
template <class Counters, class Place>
std::vector<Counters> by_tiers(const std::vector<Counters>& from, const Place& place, size_t n) {
  std::vector<Counters> sums(n);
  for (size_t i = 0; i < from.size(); ++i) add_figures(sums[place(i)], from[i]);
  return sums;
}

Scheduler::Counted counted_for(const TierTable& to, const TierTable& from, Scheduler::Counted counted) {
  const auto memory = [&](size_t m) {
    const std::string& tier = from.tier_of(static_cast<MemoryId>(m + 1)).config.name;
    return to.find(tier)->first_memory - size_t{1};
  };
  const auto link = [&](size_t l) {
    const Link& of = from.topology.links[l];
    const auto ends = [](const TierTable& table, const Link& x) {
      return std::pair(table.tier_of(x.from).config.name, table.tier_of(x.to).config.name);
    };
    const auto same = [&](const Link& other) { return ends(to, other) == ends(from, of); };
    return static_cast<size_t>(std::ranges::find_if(to.topology.links, same) - to.topology.links.begin());
  };
  counted.memories = by_tiers(counted.memories, memory, to.topology.memories.size());
  counted.links = by_tiers(counted.links, link, to.topology.links.size());
  return counted;
}

}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::create(RunPlan plan, const RuntimeOptions& options) {
  std::unique_ptr<Runtime> runtime(new Runtime(options));
  TIERD_ASSIGN(runtime->now_, Assembly::create(std::move(plan), options, runtime->waiter_));
  runtime->engine_ =
      std::make_shared<Engine>(runtime->now_->engine_parts(), [of = runtime.get()] { return of->recover(); });
  return runtime;
}

Runtime::~Runtime() {
  if (engine_ != nullptr) (void)engine_->drain();
  if (now_ != nullptr) Assembly::give_up(std::move(now_), std::move(engine_));
}

Status Runtime::load(const std::function<void(double)>& told) {
  uint64_t bytes = 0;
  for (size_t tier = 0; tier < now_->tiers.size(); ++tier) bytes += now_->resident_bytes(tier);
  uint64_t done = 0;
  Progress progress("loading", bytes, options_.quiet || bytes < (64u << 20));
  TIERD_TRY(engine_->load([&](uint64_t landed) {
    progress.advance(landed);
    done += landed;
    if (told) told(std::min(1.0, static_cast<double>(done) / static_cast<double>(bytes)));
  }));
  progress.finish();
  return {};
}

std::vector<std::span<const std::byte>> Runtime::arena() const {
  const std::vector<Edition>& editions = now_->plan.model.sites.editions;
  std::vector<std::span<const std::byte>> pieces;
  for (EditionId e = 0; e < editions.size(); ++e) {
    const uint64_t bytes = uint64_t{now_->slots.front()[e]} * editions[e].slot_bytes;
    if (bytes != 0) pieces.push_back(now_->pools.memory(1).subspan(now_->arena_offset.front()[e], bytes));
  }
  return pieces;
}

Result<uint64_t> Runtime::capacity_bytes(std::string_view capacity, std::string_view origin,
                                         size_t tier) const {
  TIERD_ASSIGN(const Capacity asked, parse_capacity(capacity, origin));
  const uint64_t all = least_capacity(tier) + now_->plan.memory.tiers[tier].whole;
  switch (asked.kind) {
    case Capacity::Kind::all:
      return all;
    case Capacity::Kind::automatic:
      return std::min(all, most_capacity(tier).left_bytes);
    case Capacity::Kind::share:
      return static_cast<uint64_t>(asked.share *
                                   static_cast<double>(now_->plan.store.manifest().tensor_bytes));
    case Capacity::Kind::bytes:
      break;
  }
  return asked.bytes;
}

MemoryLimit Runtime::most_capacity(size_t tier) const {
  MemoryLimit most = memory_left();
  most.left_bytes += std::min(UINT64_MAX - most.left_bytes, budget(tier).used());
  return most;
}

Status Runtime::resizable(size_t tier) const {
  for (const size_t m : now_->memories_of(tier))
    TIERD_TRY(now_->scheduler->resizable(static_cast<MemoryId>(m + 1)));
  return {};
}

// Caches below this tier also split anew, since they may decide by the content of the memories above.
Status Runtime::resize(size_t tier, std::vector<uint64_t> parts) {
  ArenaParts asked(parts.size());
  for (const size_t m : now_->memories_of(tier)) asked[m] = parts[m];
  for (size_t m = asked.size(); m-- > 0;) {
    const MemoryId over = now_->plan.tiers.topology.memories[m].over;
    if (!asked[m] || over == kStore || asked[over - 1u] || !now_->scheduler->resizable(over).ok()) continue;
    asked[over - 1u] = parts[over - 1u];
  }
  std::vector<uint64_t> before(now_->tiers.size());
  for (size_t t = 0; t < now_->tiers.size(); ++t) before[t] = now_->resident_bytes(t);
  now_->parts.swap(parts);
  now_->strategies->tell_bytes(now_->parts);
  if (Status resized = engine_->resize(asked); !resized.ok()) {
    now_->parts.swap(parts);
    now_->strategies->tell_bytes(now_->parts);
    return resized;
  }
  for (size_t m = 0; m < asked.size(); ++m) {
    for (EditionId e = 0; e < now_->slots[m].size() && asked[m]; ++e)
      now_->slots[m][e] = now_->residencies[m].max_slots(e);
  }
  for (size_t t = 0; t < now_->tiers.size(); ++t) {
    if (t == tier) continue;
    now_->tiers[t].budget.release(kResident, before[t]);
    TIERD_TRY(now_->tiers[t].budget.reserve(kResident, now_->resident_bytes(t)));
  }
  return {};
}

std::vector<uint64_t> Runtime::parts_with(size_t tier, uint64_t arena) const {
  const std::vector<size_t> memories = now_->memories_of(tier);
  const std::vector<uint64_t> divided = now_->strategies->divide(
      arena, static_cast<MemoryId>(memories.front() + 1), static_cast<uint32_t>(memories.size()));
  std::vector<uint64_t> parts = now_->parts;
  for (size_t i = 0; i < memories.size(); ++i) parts[memories[i]] = divided[i];
  return parts;
}

Status Runtime::strategies_fit(size_t tier, uint64_t bytes, const std::string& key) const {
  const uint64_t beside = least_capacity(tier), whole = now_->plan.memory.tiers[tier].whole;
  const auto asked = [&](uint64_t capacity) {
    return now_->strategies->fits(parts_with(tier, std::min(whole, capacity - beside)), now_->parts);
  };
  const Status fits = asked(bytes);
  if (fits.code() != Code::no_space) return fits;
  uint64_t too_little = bytes, enough = beside + whole;
  if (!asked(enough).ok()) return fits;
  while (enough - too_little > 1) {
    const uint64_t middle = too_little + (enough - too_little) / 2;
    (asked(middle).ok() ? enough : too_little) = middle;
  }
  return Error{Code::no_space, key,
               fmt::format("{} is too little: {}; the minimum is {} ({} bytes)",
                           format_bytes(static_cast<double>(bytes)), fits.error().line(),
                           format_bytes(static_cast<double>(enough)), enough)};
}

Status Runtime::set_capacity(std::string_view capacity, bool fit, size_t tier) {
  Budget& budget = now_->tiers[tier].budget;
  TierMemory& memory = now_->plan.memory.tiers[tier];
  const std::string key = now_->plan.tiers.memories[tier].key("capacity");
  BudgetChange change{tier, engine_->steps(), budget.capacity(), 0, 0, false};
  TIERD_ASSIGN(change.to, capacity_bytes(capacity, key, tier));
  TIERD_TRY(resizable(tier));
  const uint64_t resident = now_->resident_bytes(tier);
  const uint64_t beside = least_capacity(tier);
  if (change.to < beside) {
    if (!fit) {
      return Error{Code::no_space, key,
                   fmt::format("{} is too little: {} ({} bytes) are in use apart from resident weights; set "
                               "that capacity, or --fit",
                               format_bytes(static_cast<double>(change.to)),
                               format_bytes(static_cast<double>(beside)), beside)};
    }
    change.to = beside;
    change.raised_to_least = true;
  }
  TIERD_TRY(strategies_fit(tier, change.to, key));
  if (change.to > change.from && !options_.force && now_->plan.config.execute != "trace") {
    const MemoryLimit most = most_capacity(tier);
    if (change.to > most.left_bytes)
      return too_much_memory(now_->plan.tiers.memories[tier].config.name, change.to, most);
  }
  const uint64_t arena = std::min(memory.whole, change.to - beside);
  if (arena > now_->tiers[tier].most_arena) {
    return Error{
        Code::unsupported, key,
        fmt::format(
            "addresses are reserved for {} of weights, expected at least {}; restart with a larger capacity",
            format_bytes(static_cast<double>(now_->tiers[tier].most_arena)),
            format_bytes(static_cast<double>(arena)))};
  }
  TIERD_TRY(engine_->drain());
  TIERD_TRY(resize(tier, parts_with(tier, arena)));
  // By now the memory of a smaller arena was returned; `load` fills a larger one.
  change.resident = now_->resident_bytes(tier);
  budget.release(kResident, resident);
  budget.set_capacity(change.to);
  TIERD_TRY(budget.reserve(kResident, change.resident));
  memory.capacity = change.to;
  memory.arena = arena;
  memory.raised_to_least = change.raised_to_least;
  budget_changes_.push_back(change);
  return engine_->load({});
}

Status Runtime::swap(std::string_view kind, const StrategyConfig& strategy, const std::string& tier) {
  const std::string table = kind == "cache" ? table_of_cache(tier) : std::string(kind);
  if (kind == "cache" && !now_->strategies->has_cache_of(tier)) {
    return Error{Code::invalid_argument, table,
                 tier.empty() ? "every tier has a cache of its own; name the tier"
                              : "the tier has no cache of its own; change the one of [cache]"};
  }
  TIERD_ASSIGN(ChosenStrategy chosen,
               choose_strategy(
                   plugin_path(now_->plan.config), kind == "heat" ? "predictor" : kind, strategy,
                   std::make_shared<const ModelTensors>(now_->plan.store, now_->plan.source.get()), table));
  if (chosen.tensors) TIERD_TRY(chosen.tensors->check_model(now_->plan.store.manifest().config));
  TIERD_TRY(engine_->drain());
  TIERD_TRY(replace(kind, std::move(chosen), strategy, tier));
  strategy_in(now_->plan.config, kind, tier) = strategy;
  return {};
}

Status Runtime::replace(std::string_view kind, ChosenStrategy chosen, const StrategyConfig& strategy,
                        const std::string& tier) {
  const PluginTensors* tables = now_->strategies->instance(kind, tier).choice().tensors.get();
  // A predictor that keeps the heat besides its own work stays.
  const bool joins = kind == "heat" && !now_->strategies->keeps_heat_apart();
  const uint64_t leaving = tables != nullptr && !joins ? tables->bytes : 0;
  const uint64_t coming = chosen.table_bytes();
  // Both are in memory for a moment.
  Budget& budget = now_->tiers.front().budget;
  if (const Status room = budget.reserve(kPluginTables, coming); !room.ok()) {
    return Error{room.code(), chosen.tensors->path(), room.error().line()};
  }
  const auto swap = [&]() -> Status {
    TIERD_ASSIGN(StrategyChoice choice, read_tensors(std::move(chosen)));
    return kind == "heat" ? now_->strategies->swap_heat(choice)
                          : now_->strategies->swap(std::move(choice), now_->parts, tier);
  };
  Status swapped = swap();
  if (!swapped.ok()) swapped = naming_model(swapped.error(), now_->plan.config.model);
  budget.release(kPluginTables, swapped.ok() ? leaving : coming);
  if (swapped.ok() && now_->recorder != nullptr) now_->recorder->swapped(std::string(kind), strategy, tier);
  return swapped;
}

// Calls `visit` with every strategy, its configuration, its fallback and, for a cache that a tier has of its
// own, the tier. Stops at the first error.
template <class Visit>
Status Runtime::for_each_strategy(const Visit& visit) const {
  const Strategies& s = now_->strategies->strategies();
  const Config& c = now_->plan.config;
  const std::string none;
  TIERD_TRY(visit(s.predictor, c.predictor, now_->plan.fallbacks.predictor, none));
  TIERD_TRY(visit(s.heat, c.heat, now_->plan.fallbacks.heat, none));
  TIERD_TRY(visit(s.quantizer, c.quantizer, now_->plan.fallbacks.quantizer, none));
  for (const Tier& tier : now_->plan.tiers.memories) {
    const bool own = !tier.config.cache.name.empty();
    const StrategyConfig& config = own ? tier.config.cache : c.cache;
    const StrategyChoice& fallback = now_->plan.fallbacks.cache_of(tier.config.name);
    for (uint32_t i = 0; i < tier.config.count; ++i) {
      const auto& cache = s.caches[tier.first_memory - 1u + i];
      TIERD_TRY(visit(cache, config, fallback, own ? tier.config.name : none));
    }
  }
  return visit(s.balancer, c.balancer, now_->plan.fallbacks.balancer, none);
}

Status Runtime::quarantine() const {
  return for_each_strategy([](const StrategyBase& strategy, const StrategyConfig&,
                              const StrategyChoice& fallback, const std::string& tier) -> Status {
    if (!strategy.quarantined() || fallback.plugin != nullptr) return {};
    Error error = strategy.error();
    error.detail = fmt::format("is quarantined ({}), and '{}{}.fallback' is empty", error.detail,
                               tier.empty() ? "" : fmt::format("tiers.{}.", tier), strategy.kind);
    return error;
  });
}

Status Runtime::recover() {
  TIERD_TRY(quarantine());
  return for_each_strategy([this](const StrategyBase& strategy, const StrategyConfig& config,
                                  const StrategyChoice& fallback, const std::string& tier) -> Status {
    if (!strategy.quarantined()) return {};
    spdlog::warn("{}; it is replaced by {}", strategy.error().line(), fallback.plugin->name);
    return replace(strategy.kind, {fallback, {}}, StrategyConfig{config.fallback}, tier);
  });
}

Status Runtime::make_anew() {
  // Copies, since replacing a strategy destroys its name.
  struct Broken {
    std::string kind;
    StrategyConfig config;
    std::string tier;
  };
  std::vector<Broken> broken;
  TIERD_TRY(for_each_strategy([&](const StrategyBase& strategy, const StrategyConfig& config,
                                  const StrategyChoice&, const std::string& tier) -> Status {
    // A predictor that also keeps the heat is made anew as a whole.
    const bool joins = strategy.kind == "heat" && config.name.empty();
    const Config& c = now_->plan.config;
    if (!strategy.quarantined()) return {};
    broken.push_back(joins ? Broken{"predictor", c.predictor, {}} : Broken{strategy.kind, config, tier});
    return {};
  }));
  const Broken* last = nullptr;
  for (const Broken& one : broken) {
    // A swap replaces the equal caches of all memories, and the heat with its predictor.
    const bool is_done = last != nullptr && one.kind == last->kind && one.tier == last->tier;
    last = &one;
    if (!is_done) TIERD_TRY(swap(one.kind, one.config, one.tier));
  }
  return {};
}

Status Runtime::end_recording() {
  if (now_->timeline != nullptr) TIERD_TRY(now_->timeline->finish());
  return now_->recorder != nullptr ? now_->recorder->finish() : Status();
}

MemoryCounters Runtime::counters(size_t tier) const {
  MemoryCounters all;
  for (const size_t m : now_->memories_of(tier))
    add_figures(all, now_->scheduler->counters(static_cast<MemoryId>(m + 1)));
  return all;
}

double Runtime::link_rate(size_t link) const {
  const Link& of = now_->plan.tiers.topology.links[link];
  if (of.from == kStore && of.agent == now_->plan.tiers.store.first_agent) return 0;
  const Tier& to = now_->plan.tiers.tier_of(of.to);
  const auto tier = static_cast<size_t>(&to - now_->plan.tiers.memories.data());
  return now_->tiers[tier].agents[of.to - static_cast<size_t>(to.first_memory)].link_rate;
}

std::vector<TierLink> Runtime::links() const {
  std::vector<TierLink> links;
  const std::vector<Link>& all = now_->plan.tiers.topology.links;
  for (size_t l = 0; l < all.size(); ++l) {
    const std::string from = now_->plan.tiers.tier_of(all[l].from).config.name;
    const std::string to = now_->plan.tiers.tier_of(all[l].to).config.name;
    const auto same = [&](const TierLink& link) { return link.from == from && link.to == to; };
    auto found = std::ranges::find_if(links, same);
    if (found == links.end()) found = links.insert(links.end(), {from, to, {}});
    add_figures(found->counters, now_->scheduler->link_counters(l));
  }
  return links;
}

AgentCounts Runtime::counts_of_agents(size_t tier) const {
  AgentCounts all = now_->tiers[tier].before;
  for (const MadeAgent& agent : now_->tiers[tier].agents) all += counts_of(agent);
  return all;
}

ReadCounts Runtime::flash_counts() const {
  ReadCounts all = now_->flash_before.read;
  all += counts_of(now_->flash).read;
  for (size_t tier = 0; tier < now_->tiers.size(); ++tier) {
    if (const auto direct = direct_reads(tier)) all += direct->counts;
  }
  return all;
}

std::optional<Runtime::DirectReads> Runtime::direct_reads(size_t tier) const {
  if (!now_->plan.tiers.memories[tier].reads_directly()) return std::nullopt;
  const ReadChoices& reading = now_->tiers[tier].agents.front().reading;
  return DirectReads{reading.way, reading.way_why, counts_of_agents(tier).read};
}

ComputeCounts Runtime::compute_counts() const {
  ComputeCounts all;
  for (size_t tier = 0; tier < now_->tiers.size(); ++tier) all += counts_of_agents(tier).compute;
  return all;
}

MoveCounts Runtime::move_counts(size_t tier) const {
  return counts_of_agents(tier).move;
}

RunCounts Runtime::run_counts(size_t tier) const {
  return counts_of_agents(tier).run;
}

uint64_t Runtime::agent_wake_ups() const {
  uint64_t all = now_->flash_thread ? now_->flash_thread->wake_ups() : 0;
  for (const Assembly::TierState& tier : now_->tiers) {
    for (const auto& thread : tier.threads) all += thread->wake_ups();
  }
  return all;
}

Result<PlannedTraffic> Runtime::planned_traffic() const {
  TIERD_ASSIGN(const auto kept, now_->strategies->wanted());
  return plan_traffic(now_->plan, now_->strategies->placement(), kept);
}

void Runtime::go_on_without_lost_agents() {
  engine_->set_rebuild([this](uint16_t agent) { return rebuild(agent); });
}

Config Runtime::present_config() const {
  Config config = now_->plan.config;
  for (const BudgetChange& change : budget_changes_)
    tier_in(config, now_->plan.tiers.memories[change.tier].config.name).capacity = std::to_string(change.to);
  return config;
}

Result<EngineParts> Runtime::rebuild(uint16_t lost) {
  Error error = now_->dispatcher->lost(lost);
  const std::vector<Tier>& tiers = now_->plan.tiers.memories;
  const auto of = std::ranges::find_if(tiers, [lost](const Tier& tier) {
    return lost >= tier.first_agent && lost < tier.first_agent + tier.config.count;
  });
  if (of == tiers.end()) {
    error.detail += fmt::format("; it is the only agent that reads the store ({})",
                                now_->plan.tiers.store.config.table());
    return error;
  }
  Config config = present_config();
  const uint32_t left = --tier_in(config, of->config.name).count;
  if (left == 0) {
    error.detail += fmt::format("; {} has no other", of->config.table());
    return error;
  }
  spdlog::warn("{}; continuing with {} of {} agents of {}", error.line(), left, left + 1, of->config.table());
  if (const Status ended = end_recording(); !ended.ok()) spdlog::warn("{}", ended.error().line());
  config.trace = config.timeline = "";
  // Give back first, because two assemblies do not fit.
  now_->give_back();
  const auto remake = [&]() -> Result<std::unique_ptr<Assembly>> {
    TIERD_ASSIGN(RunPlan plan, plan_run(config, options_));
    return Assembly::create(std::move(plan), options_, waiter_);
  };
  Result<std::unique_ptr<Assembly>> remade = remake();
  if (!remade.ok()) {
    error.detail += fmt::format("; without it: {}", remade.error().line());
    return error;
  }
  Assembly& next = **remade;
  next.scheduler->count_on(counted_for(next.plan.tiers, now_->plan.tiers, now_->scheduler->counted()));
  next.flash_before = now_->flash_before;
  for (size_t tier = 0; tier < tiers.size(); ++tier) {
    const Tier* same = next.plan.tiers.find(tiers[tier].config.name);
    if (same == nullptr) continue;
    next.tiers[static_cast<size_t>(same - next.plan.tiers.memories.data())].before = now_->tiers[tier].before;
  }
  Assembly::give_up(std::exchange(now_, std::move(*remade)), engine_);
  return now_->engine_parts();
}

}  // namespace tierd
