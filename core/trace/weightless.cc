#include "core/trace/weightless.h"

#include <utility>

namespace tierd {
namespace {

Dispatcher::Options dispatch(const TraceHeader& header) {
  Dispatcher::Options options;
  options.max_messages = header.max_messages;
  options.max_units = header.max_units;
  return options;
}

}  // namespace

Result<StrategyChoices> choose_recorded(const TraceHeader& header, const ChooseStrategy& choose) {
  StrategyChoices choices;
  TIERD_ASSIGN(choices.predictor, choose("predictor", header.predictor));
  TIERD_ASSIGN(choices.quantizer, choose("quantizer", header.quantizer));
  TIERD_ASSIGN(choices.cache, choose("cache", header.cache));
  TIERD_ASSIGN(choices.balancer, choose("balancer", header.balancer));
  return choices;
}

WeightlessKernel::WeightlessKernel(const TraceHeader& header) : dispatcher_(pools_, dispatch(header)) {}

Result<std::unique_ptr<WeightlessKernel>> WeightlessKernel::create(const TraceHeader& header,
                                                                   const StrategyChoices& strategies,
                                                                   uint64_t arena_bytes,
                                                                   std::vector<Agent*> agents) {
  std::unique_ptr<WeightlessKernel> kernel(new WeightlessKernel(header));
  for (Agent* agent : agents) (void)kernel->dispatcher_.add_agent(*agent);
  // No wall clock decides anything here: two replays of a trace are the same.
  TIERD_ASSIGN(kernel->strategies_,
               StrategySet::create(strategies, header.sites, header.seed, kNoPluginDeadline));
  TIERD_ASSIGN(kernel->slots_, kernel->strategies_->share(arena_bytes));
  kernel->residency_ = std::make_unique<Residency>(header.sites, kernel->slots_);
  kernel->strategies_->set_residency(kernel->residency_.get());
  Scheduler::Options options = header.scheduler;
  options.arena_offset.clear();
  uint64_t offset = 0;
  for (SiteId s = 0; s < header.sites.size(); ++s) {
    options.arena_offset.push_back(offset);
    offset += uint64_t{kernel->slots_[s]} * header.sites[s].slot_bytes;
  }
  kernel->scheduler_ =
      std::make_unique<Scheduler>(kernel->dispatcher_, header.sites, kernel->strategies_->strategies(),
                                  *kernel->residency_, std::move(options));
  return kernel;
}

}  // namespace tierd
