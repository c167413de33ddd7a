#include "core/run/run_trace.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/units.h"
#include "core/run/strategy_choices.h"

namespace tierd {

std::map<std::string, std::string> run_facts(const RunPlan& plan) {
  std::map<std::string, std::string> facts = {
      {"model", plan.config.model},
      {"clock", plan.config.clock},
      {"backend", "host"},
  };
  for (size_t tier = 0; tier < plan.memory.tiers.size(); ++tier) {
    const TierMemory& memory = plan.memory.tiers[tier];
    facts[plan.tiers.memories[tier].config.name] =
        fmt::format("{} ({} for weights)", format_bytes(static_cast<double>(memory.capacity)),
                    format_bytes(static_cast<double>(memory.arena)));
  }
  return facts;
}

TraceHeader trace_header(const RunPlan& plan, const std::vector<std::vector<uint32_t>>& slots,
                         const Scheduler::Options& scheduler, const Dispatcher::Options& dispatcher,
                         const std::vector<const Agent*>& agents) {
  const Config& config = plan.config;
  TraceHeader header;
  header.facts = run_facts(plan);
  header.sites = plan.model.sites;
  header.slots = slots;
  header.scheduler = scheduler;
  header.max_messages = dispatcher.max_messages;
  header.max_units = dispatcher.max_units;
  for (const Agent* agent : agents) header.agents.push_back({std::string(agent->name()), agent->credits()});
  header.seed = config.seed;
  header.predictor = config.predictor;
  header.quantizer = config.quantizer;
  header.heat = config.heat;
  header.cache = config.cache;
  for (const TierConfig& tier : config.tiers) {
    if (!tier.cache.name.empty()) header.tier_caches[tier.name] = tier.cache;
  }
  header.balancer = config.balancer;
  return header;
}

ChooseStrategy strategies_on(PluginPath path) {
  return [path = std::move(path)](std::string_view kind,
                                  const StrategyConfig& strategy) -> Result<StrategyChoice> {
    TIERD_ASSIGN(ChosenStrategy chosen, choose_strategy(path, kind, strategy));
    return read_tensors(std::move(chosen));
  };
}

}  // namespace tierd
