// agent-dram.so
#include <fmt/format.h>

#include "core/agent/agent_entry.h"
#include "tiers/dram/dram_agent.h"

namespace tierd {
namespace {

Result<MadeAgent> make(const AgentContext& context) {
  if (!context.compute) return Error{Code::invalid_argument, "dram", "there is nothing to compute"};
  const ComputeTask& task = *context.compute;
  const ComputeKernels* kernels = task.kernels == "auto" ? &best_kernels() : kernels_by_name(task.kernels);
  if (kernels == nullptr) {
    return Error{Code::unsupported, "compute.kernels", fmt::format("this processor has no {}", task.kernels)};
  }
  DramAgent::Options options;
  options.number = context.number;
  options.memory = task.memory;
  options.arena_bytes = task.arena_bytes;
  options.staging_bytes = task.staging_bytes;
  options.tensor_bytes = task.tensor_bytes;
  options.tensors = task.tensors;
  auto team = std::make_unique<Team>(Team::Options{.workers = task.threads, .cores = task.cores});
  TIERD_ASSIGN(std::unique_ptr<DramAgent> agent,
               DramAgent::create(options, context.pools, task.plan, *kernels, std::move(team)));
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

TIERD_AGENT("dram", "an arena that reads land in, and the CPU that computes on it",
            tierd::serves(tierd::Op::run) | tierd::serves(tierd::Op::move) | tierd::serves(tierd::Op::resize),
            tierd::kNoParams, tierd::make)
