// agent-dram.so
#include "core/agent/agent_entry.h"
#include "tiers/dram/dram_agent.h"

namespace tierd {
namespace {

Result<MadeAgent> make(const AgentContext& context) {
  if (!context.compute)
    return Error{Code::invalid_argument, "dram",
                 "the agent needs a computation, but the run has none for it"};
  const ComputeTask& task = *context.compute;
  TIERD_ASSIGN(const ComputeKernels* const kernels, choose_kernels(task.kernels));
  auto team = std::make_unique<Team>(Team::Options{.workers = task.threads, .cores = task.cores});
  TIERD_ASSIGN(std::unique_ptr<DramAgent> agent,
               DramAgent::create(DramAgent::Options::of(context), context.pools, task.plan, *kernels,
                                 std::move(team)));
  MadeAgent made;
  made.backend = kernels->name;
  made.products = agent.get();
  made.counts = [agent = agent.get()] { return agent->counts(); };
  made.agent = std::move(agent);
  return made;
}

constexpr std::span<const tierd_param> kNoParams;

}  // namespace
}  // namespace tierd

TIERD_AGENT("dram", "memory of the host, and the CPU that computes from it",
            tierd::serves(tierd::Op::run) | tierd::serves(tierd::Op::move) |
                tierd::serves(tierd::Op::resize) | tierd::kRecodes,
            tierd::kNoParams, tierd::make)
