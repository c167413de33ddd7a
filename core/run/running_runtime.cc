// This is what a running Runtime does and tells. It loads what stays resident, moves the budget and replaces
// strategies between steps, and counts.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "core/base/progress.h"
#include "core/base/units.h"
#include "core/run/runtime.h"
#include "core/run/runtime_names.h"

namespace tierd {
Status Runtime::load(const std::function<void(double)>& told) {
  uint64_t bytes = 0;
  for (size_t tier = 0; tier < tiers_.size(); ++tier) bytes += resident_bytes(tier);
  uint64_t done = 0;
  Progress progress("loading", bytes, quiet_ || bytes < (64u << 20));
  TIERD_TRY(engine_->load([&](uint64_t landed) {
    progress.advance(landed);
    done += landed;
    if (told) told(std::min(1.0, static_cast<double>(done) / static_cast<double>(bytes)));
  }));
  progress.finish();
  return {};
}

uint64_t Runtime::resident_bytes(size_t tier) const {
  uint64_t bytes = 0;
  for (const size_t m : memories_of(tier)) {
    for (EditionId e = 0; e < slots_[m].size(); ++e)
      bytes += uint64_t{slots_[m][e]} * plan_.model.sites.editions[e].slot_bytes;
  }
  return bytes;
}

std::vector<std::span<const std::byte>> Runtime::arena() const {
  const std::vector<Edition>& editions = plan_.model.sites.editions;
  std::vector<std::span<const std::byte>> pieces;
  for (EditionId e = 0; e < editions.size(); ++e) {
    const uint64_t bytes = uint64_t{slots_.front()[e]} * editions[e].slot_bytes;
    if (bytes != 0) pieces.push_back(pools_.memory(1).subspan(arena_offset_.front()[e], bytes));
  }
  return pieces;
}

Result<uint64_t> Runtime::capacity_bytes(std::string_view capacity, std::string_view origin,
                                         size_t tier) const {
  TIERD_ASSIGN(const Capacity asked, parse_capacity(capacity, origin));
  const uint64_t all = least_capacity(tier) + plan_.memory.tiers[tier].whole;
  switch (asked.kind) {
    case Capacity::Kind::all:
      return all;
    case Capacity::Kind::automatic:
      return std::min(all, most_capacity(tier).left_bytes);
    case Capacity::Kind::share:
      return static_cast<uint64_t>(asked.share * static_cast<double>(plan_.store.manifest().tensor_bytes));
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
  for (const size_t m : memories_of(tier)) TIERD_TRY(scheduler_->resizable(static_cast<MemoryId>(m + 1)));
  return {};
}

// What is kept above may decide what is kept below: caches of the memories that the tier lies over split
// theirs anew.
Status Runtime::resize(size_t tier, std::vector<uint64_t> parts) {
  ArenaParts asked(parts.size());
  for (const size_t m : memories_of(tier)) asked[m] = parts[m];
  for (size_t m = asked.size(); m-- > 0;) {
    const MemoryId over = plan_.tiers.topology.memories[m].over;
    if (!asked[m] || over == kStore || asked[over - 1u] || !scheduler_->resizable(over).ok()) continue;
    asked[over - 1u] = parts[over - 1u];
  }
  std::vector<uint64_t> before(tiers_.size());
  for (size_t t = 0; t < tiers_.size(); ++t) before[t] = resident_bytes(t);
  parts_.swap(parts);
  strategies_->tell_bytes(parts_);
  if (Status resized = engine_->resize(asked); !resized.ok()) {
    parts_.swap(parts);
    strategies_->tell_bytes(parts_);
    return resized;
  }
  for (size_t m = 0; m < asked.size(); ++m) {
    for (EditionId e = 0; e < slots_[m].size() && asked[m]; ++e) slots_[m][e] = residencies_[m].max_slots(e);
  }
  for (size_t t = 0; t < tiers_.size(); ++t) {
    if (t == tier) continue;
    tiers_[t].budget.release(kResident, before[t]);
    TIERD_TRY(tiers_[t].budget.reserve(kResident, resident_bytes(t)));
  }
  return {};
}

Status Runtime::set_capacity(std::string_view capacity, bool fit, size_t tier) {
  Budget& budget = tiers_[tier].budget;
  TierMemory& memory = plan_.memory.tiers[tier];
  const std::string key = plan_.tiers.memories[tier].key("capacity");
  BudgetChange change{tier, engine_->steps(), budget.capacity(), 0, 0, false};
  TIERD_ASSIGN(change.to, capacity_bytes(capacity, key, tier));
  TIERD_TRY(resizable(tier));
  const uint64_t resident = resident_bytes(tier);
  const uint64_t beside = least_capacity(tier);
  if (change.to < beside) {
    if (!fit) {
      return Error{Code::no_space, key,
                   fmt::format("{} is too little now: {} ({} bytes) are in use beside the weights that stay; "
                               "give that much, or --fit",
                               format_bytes(static_cast<double>(change.to)),
                               format_bytes(static_cast<double>(beside)), beside)};
    }
    change.to = beside;
    change.raised_to_least = true;
  }
  if (change.to > change.from && !force_) {
    const MemoryLimit most = most_capacity(tier);
    if (change.to > most.left_bytes)
      return too_much_memory(plan_.tiers.memories[tier].config.name, change.to, most);
  }
  const uint64_t arena = std::min(memory.whole, change.to - beside);
  if (arena > tiers_[tier].most_arena) {
    return Error{Code::unsupported, key,
                 fmt::format("there are addresses for {} of weights, {} do not fit; start anew with more",
                             format_bytes(static_cast<double>(tiers_[tier].most_arena)),
                             format_bytes(static_cast<double>(arena)))};
  }
  TIERD_TRY(engine_->drain());
  const std::vector<size_t> memories = memories_of(tier);
  const std::vector<uint64_t> divided = strategies_->divide(
      arena, static_cast<MemoryId>(memories.front() + 1), static_cast<uint32_t>(memories.size()));
  std::vector<uint64_t> resized = parts_;
  for (size_t i = 0; i < memories.size(); ++i) resized[memories[i]] = divided[i];
  TIERD_TRY(resize(tier, std::move(resized)));
  // By now the memory of a smaller arena was given back; that of a larger one is used by `load`.
  change.resident = resident_bytes(tier);
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
  if (kind == "cache" && !strategies_->has_cache_of(tier)) {
    return Error{Code::invalid_argument, tier.empty() ? "cache" : fmt::format("tiers.{}.cache", tier),
                 tier.empty() ? "every tier has a cache of its own" : "the tier has no cache of its own"};
  }
  TIERD_ASSIGN(ChosenStrategy chosen,
               choose_strategy(plugin_path(plan_.config), kind == "heat" ? "predictor" : kind, strategy,
                               std::make_shared<const ModelTensors>(plan_.store, plan_.source.get())));
  if (chosen.tensors) TIERD_TRY(chosen.tensors->check_model(plan_.store.manifest().config));
  TIERD_TRY(engine_->drain());
  return replace(kind, std::move(chosen), strategy, tier);
}

Status Runtime::replace(std::string_view kind, ChosenStrategy chosen, const StrategyConfig& strategy,
                        const std::string& tier) {
  const PluginTensors* tables = strategies_->instance(kind, tier).choice().tensors.get();
  // What kept the heat beside its own work stays.
  const bool joins = kind == "heat" && !strategies_->keeps_heat_apart();
  const uint64_t leaving = tables != nullptr && !joins ? tables->bytes : 0;
  const uint64_t coming = chosen.table_bytes();
  // Both are there for a moment.
  Budget& budget = tiers_.front().budget;
  if (const Status room = budget.reserve(kPluginTables, coming); !room.ok()) {
    return Error{room.code(), chosen.tensors->path(), room.error().line()};
  }
  const auto swap = [&]() -> Status {
    TIERD_ASSIGN(StrategyChoice choice, read_tensors(std::move(chosen)));
    return kind == "heat" ? strategies_->swap_heat(choice)
                          : strategies_->swap(std::move(choice), parts_, tier);
  };
  const Status swapped = swap();
  budget.release(kPluginTables, swapped.ok() ? leaving : coming);
  if (swapped.ok() && recorder_ != nullptr) recorder_->swapped(std::string(kind), strategy, tier);
  return swapped;
}

Status Runtime::recover() {
  const auto heal = [&](const auto& strategy, const StrategyChoice& fallback, const StrategyConfig& config,
                        const std::string& tier = {}) -> Status {
    if (!strategy.quarantined()) return {};
    if (fallback.plugin == nullptr) {
      Error error = strategy.error();
      error.detail = fmt::format("is quarantined ({}); '{}{}.fallback' names no other", error.detail,
                                 tier.empty() ? "" : fmt::format("tiers.{}.", tier), strategy.kind);
      return error;
    }
    spdlog::warn("{}; {} takes its place", strategy.error().line(), fallback.plugin->name);
    return replace(strategy.kind, {fallback, {}}, StrategyConfig{config.fallback}, tier);
  };
  const Strategies& s = strategies_->strategies();
  const Config& c = plan_.config;
  TIERD_TRY(heal(s.predictor, plan_.fallbacks.predictor, c.predictor));
  TIERD_TRY(heal(s.heat, plan_.fallbacks.heat, c.heat));
  TIERD_TRY(heal(s.quantizer, plan_.fallbacks.quantizer, c.quantizer));
  for (const Tier& tier : plan_.tiers.memories) {
    const bool own = !tier.config.cache.name.empty();
    const StrategyConfig& config = own ? tier.config.cache : c.cache;
    for (uint32_t i = 0; i < tier.config.count; ++i) {
      const auto& cache = s.caches[tier.first_memory - 1u + i];
      TIERD_TRY(heal(cache, plan_.fallbacks.cache_of(tier.config.name), config, own ? tier.config.name : ""));
    }
  }
  return heal(s.balancer, plan_.fallbacks.balancer, c.balancer);
}

Status Runtime::end_recording() {
  if (timeline_ != nullptr) TIERD_TRY(timeline_->finish());
  return recorder_ != nullptr ? recorder_->finish() : Status();
}

MemoryCounters Runtime::counters(size_t tier) const {
  MemoryCounters all;
  for (const size_t m : memories_of(tier)) all += scheduler_->counters(static_cast<MemoryId>(m + 1));
  return all;
}

double Runtime::link_rate(size_t link) const {
  const Link& of = plan_.tiers.topology.links[link];
  if (of.from == kStore && of.agent == plan_.tiers.store.first_agent) return 0;
  const Tier& to = plan_.tiers.tier_of(of.to);
  const auto tier = static_cast<size_t>(&to - plan_.tiers.memories.data());
  return tiers_[tier].agents[of.to - static_cast<size_t>(to.first_memory)].link_rate;
}

std::vector<TierLink> Runtime::links() const {
  std::vector<TierLink> links;
  const std::vector<Link>& all = plan_.tiers.topology.links;
  for (size_t l = 0; l < all.size(); ++l) {
    const std::string from = plan_.tiers.tier_of(all[l].from).config.name;
    const std::string to = plan_.tiers.tier_of(all[l].to).config.name;
    const auto same = [&](const TierLink& link) { return link.from == from && link.to == to; };
    auto found = std::ranges::find_if(links, same);
    if (found == links.end()) found = links.insert(links.end(), {from, to, {}});
    found->counters += scheduler_->link_counters(l);
  }
  return links;
}

ReadCounts Runtime::flash_counts() const {
  ReadCounts all = counts(flash_).read;
  for (size_t tier = 0; tier < tiers_.size(); ++tier) {
    if (const auto direct = direct_reads(tier)) all += direct->counts;
  }
  return all;
}

std::optional<Runtime::DirectReads> Runtime::direct_reads(size_t tier) const {
  if (!plan_.tiers.memories[tier].reads_directly()) return std::nullopt;
  DirectReads all;
  for (const MadeAgent& agent : tiers_[tier].agents) {
    all.way = agent.reading.way;
    all.way_why = agent.reading.way_why;
    all.counts += counts(agent).read;
  }
  return all;
}

ComputeCounts Runtime::compute_counts() const {
  ComputeCounts all;
  for (const TierState& tier : tiers_) {
    for (const MadeAgent& agent : tier.agents) {
      const ComputeCounts of = counts(agent).compute;
      all.shared_work += of.shared_work;
      all.threads_woken += of.threads_woken;
      all.activation_error = std::max(all.activation_error, of.activation_error);
    }
  }
  return all;
}

MoveCounts Runtime::move_counts(size_t tier) const {
  MoveCounts all;
  for (const MadeAgent& agent : tiers_[tier].agents) {
    const MoveCounts of = counts(agent).move;
    all.read_in_place += of.read_in_place;
    all.gathered += of.gathered;
  }
  return all;
}

RunCounts Runtime::run_counts(size_t tier) const {
  RunCounts all;
  for (const MadeAgent& agent : tiers_[tier].agents) {
    const RunCounts of = counts(agent).run;
    all.runs += of.runs;
    all.captured += of.captured;
  }
  return all;
}

uint64_t Runtime::agent_wake_ups() const {
  uint64_t all = flash_thread_ ? flash_thread_->wake_ups() : 0;
  for (const TierState& tier : tiers_) {
    for (const auto& thread : tier.threads) all += thread->wake_ups();
  }
  return all;
}

Result<PlannedTraffic> Runtime::planned_traffic() const {
  TIERD_ASSIGN(const auto kept, strategies_->wanted());
  return plan_traffic(plan_, strategies_->placement(), kept);
}

}  // namespace tierd
