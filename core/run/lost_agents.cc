// Continues a run without an agent that it has lost: everything but the engine is made anew, for a
// configuration with one agent less. Nothing is repaired in place, so the result is the same as a start with
// that configuration, made by the same code.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "core/run/runtime.h"

namespace tierd {
namespace {

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
    error.detail += fmt::format("; nothing else reads the store ({})", now_->plan.tiers.store.config.table());
    return error;
  }
  Config config = present_config();
  const uint32_t left = --tier_in(config, of->config.name).count;
  if (left == 0) {
    error.detail += fmt::format("; {} has no other", of->config.table());
    return error;
  }
  spdlog::warn("{}; going on with {} of {} in {}", error.line(), left, left + 1, of->config.table());
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
