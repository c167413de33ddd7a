#include "core/watch/trace/weightless.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/system/memory_limits.h"

namespace tierd {
namespace {

Dispatcher::Options dispatch(const TraceHeader& header) {
  Dispatcher::Options options;
  options.max_messages = header.max_messages;
  options.max_units = header.max_units;
  return options;
}

// Bytes of tables of residencies and strategies, and lists of a pass; measured.
constexpr uint64_t kBytesOfNeuron = 64;
constexpr uint64_t kBytesOfNeuronInMemory = 32;

// Checks that there is memory for the tables of the neurons that a header claims.
Status check_memory(const TraceHeader& header) {
  uint64_t neurons = 0;
  for (const Edition& edition : header.sites.editions) neurons += edition.n;
  const uint64_t memories = header.scheduler.topology.memories.size();
  return expect_memory(neurons * (kBytesOfNeuron + memories * kBytesOfNeuronInMemory),
                       fmt::format("a run of {} neurons", neurons));
}

}  // namespace

Result<StrategyChoices> choose_recorded(const TraceHeader& header, const ChooseStrategy& choose) {
  StrategyChoices choices;
  TIERD_ASSIGN(choices.predictor, choose("predictor", header.predictor));
  TIERD_ASSIGN(choices.quantizer, choose("quantizer", header.quantizer));
  TIERD_ASSIGN(choices.cache, choose("cache", header.cache));
  for (const auto& [tier, cache] : header.tier_caches) {
    TIERD_ASSIGN(choices.tier_caches[tier], choose("cache", cache));
  }
  TIERD_ASSIGN(choices.balancer, choose("balancer", header.balancer));
  if (!header.heat.name.empty()) {
    TIERD_ASSIGN(choices.heat, choose("predictor", header.heat));
  }
  return choices;
}

WeightlessKernel::WeightlessKernel(const TraceHeader& header, Clock& clock)
    : dispatcher_(pools_, clock, waiter_, dispatch(header)) {}

Result<std::unique_ptr<WeightlessKernel>> WeightlessKernel::create(const TraceHeader& header,
                                                                   const StrategyChoices& strategies,
                                                                   std::vector<uint64_t> parts, Clock& clock,
                                                                   std::vector<Agent*> agents,
                                                                   Recording& recording) {
  TIERD_TRY(check_memory(header));
  std::unique_ptr<WeightlessKernel> kernel(new WeightlessKernel(header, clock));
  for (Agent* agent : agents) (void)kernel->dispatcher_.add_agent(*agent);
  Scheduler::Options options = header.scheduler;
  options.recording = &recording;
  StrategySet::Options asked;
  asked.topology = options.topology;
  asked.seed = header.seed;
  asked.measure_every = options.measure_every;
  asked.deadline_ns = kNoPluginDeadline;  // no wall clock decides anything here, so replays are equal
  TIERD_ASSIGN(kernel->strategies_, StrategySet::create(strategies, header.sites, asked));
  TIERD_ASSIGN(kernel->slots_, kernel->strategies_->share(parts));
  kernel->parts_ = std::move(parts);
  for (size_t m = 0; m < options.topology.memories.size(); ++m) {
    kernel->residencies_.emplace_back(header.sites.editions, kernel->slots_[m]);
    Memory& memory = options.topology.memories[m];
    memory.arena_bytes = kernel->parts_[m];
    // Another budget than the recorded one may need more.
    for (EditionId e = 0; e < header.sites.editions.size(); ++e)
      memory.reserved[e] = std::max(memory.reserved[e], kernel->slots_[m][e]);
    memory.arena_offset = arena_offsets(header.sites.editions, memory.reserved);
  }
  kernel->strategies_->set_residencies(kernel->residencies_);
  kernel->scheduler_ =
      std::make_unique<Scheduler>(kernel->dispatcher_, header.sites, kernel->strategies_->strategies(),
                                  kernel->strategies_->placement(), kernel->residencies_, std::move(options));
  return kernel;
}

void WeightlessKernel::set_parts(const ArenaParts& parts) {
  for (size_t m = 0; m < parts.size(); ++m) parts_[m] = parts[m].value_or(parts_[m]);
  strategies_->tell_bytes(parts_);
}

}  // namespace tierd
