// agent-double.so: the GPU agent with the backend `cuda` over the double of the runtime, for tests of agents
// and of whole runs.
#include "core/agent/agent_entry.h"
#include "core/base/units.h"
#include "tests/gpu/cuda_on_host/double.h"
#include "tiers/gpu/cuda/cuda_device.h"
#include "tiers/gpu/gpu_agent.h"
#include "tiers/gpu/team_work.h"

namespace tierd {
namespace {

constexpr tierd_param kParams[] = {
    {"late", TIERD_PARAM_INTEGER, 0, "0", 0, 1'000'000, nullptr,
     "seed of the lots that say when work is done"},
    {"memory", TIERD_PARAM_TEXT, 0, "1 TB", 0, 0, nullptr, "of the device"},
    {"lockable", TIERD_PARAM_TEXT, 0, "1 TB", 0, 0, nullptr, "of the host's memory that can be registered"},
    {"launch_fails", TIERD_PARAM_INTEGER, 0, "0", 0, 1'000'000, nullptr, "which launch does"},
    {"lost_at_look", TIERD_PARAM_INTEGER, 0, "0", 0, 1'000'000, nullptr, "when the device is lost"},
    {kDirectParameter, TIERD_PARAM_FLAG, 0, "false", 0, 0, nullptr, "reads the store by itself"},
    {"blas_rows", TIERD_PARAM_INTEGER, 0, "64", 0, 65535, nullptr, "as that of the GPU agent"},
    {"cufile", TIERD_PARAM_TEXT, 0, "", 0, 0, nullptr,
     "the library that stands for libcufile.so; none if empty"},
};

Result<MadeAgent> make(const AgentContext& context) {
  if (!context.compute) return Error{Code::invalid_argument, "double", "there is nothing to compute"};
  on_host::Behaviour behaviour;
  behaviour.late = static_cast<uint64_t>(context.get<int64_t>("late"));
  behaviour.launch_fails = static_cast<uint32_t>(context.get<int64_t>("launch_fails"));
  behaviour.lost_at_look = static_cast<uint32_t>(context.get<int64_t>("lost_at_look"));
  TIERD_ASSIGN(behaviour.memory_bytes,
               parse_bytes(context.get<std::string>("memory"), context.table + ".memory"));
  TIERD_ASSIGN(behaviour.lockable_bytes,
               parse_bytes(context.get<std::string>("lockable"), context.table + ".lockable"));
  on_host::behave(behaviour);
  on_host::shuffle(behaviour.late + 1);
  cuda::DeviceOptions options = cuda::DeviceOptions::of(context);
  options.cufile = context.get<std::string>("cufile");
  options.blas_rows = static_cast<uint32_t>(context.get<int64_t>("blas_rows"));
  TIERD_ASSIGN(std::unique_ptr<cuda::CudaDevice> device,
               cuda::CudaDevice::create(
                   options, context.pools, context.clock, context.compute->plan,
                   std::make_unique<TeamWork>(best_kernels(), std::make_unique<Team>(Team::Options{}))));
  return made_with(std::move(device), context);
}

}  // namespace
}  // namespace tierd

TIERD_AGENT("double", "the GPU agent over a device that this process plays",
            tierd::serves(tierd::Op::run) | tierd::serves(tierd::Op::move) |
                tierd::serves(tierd::Op::resize) | tierd::kRecodes | tierd::kMemoryApart |
                tierd::kReadsDirectly | tierd::kJoinsRuns,
            tierd::kParams, tierd::make)
