// agent-gpu.so
#include "core/agent/agent_entry.h"
#include "core/base/units.h"
#include "tiers/gpu/cuda_object.h"
#include "tiers/gpu/gpu_agent.h"
#include "tiers/gpu/host_device.h"
#include "tiers/gpu/team_work.h"

namespace tierd {
namespace {

constexpr tierd_param kParams[] = {
    {"backend", TIERD_PARAM_TEXT, 0, "auto", 0, 0, "auto|cuda|host",
     "cuda: an NVIDIA GPU; host: this machine, which emulates one; auto: a GPU if one is usable, else host"},
    {"device", TIERD_PARAM_INTEGER, 0, "0", 0, 255, nullptr,
     "for cuda: the device's number, as in the driver"},
    {"link_rate", TIERD_PARAM_TEXT, 0, "0", 0, 0, nullptr,
     "bytes per second of the link, as in \"16 GB\", for forecasts and for the emulation by host; 0: no "
     "limit"},
    {"link_latency_us", TIERD_PARAM_INTEGER, 0, "10", 0, 1'000'000, nullptr,
     "for host: additional time of each copy over the emulated link, in microseconds"},
    {"blas_rows", TIERD_PARAM_INTEGER, 0, "64", 0, 65535, nullptr,
     "for cuda: number of rows from which a batch, such as a prompt, is multiplied by cuBLASLt, if it is "
     "installed; the results differ in their last bits from those of smaller batches; 0: never"},
    {kDirectParameter, TIERD_PARAM_FLAG, 0, "false", 0, 0, nullptr,
     "read neurons that no nearer memory holds from the store into this tier's memory, without DRAM in "
     "between: with cuFile if it is usable, else staged through memory of the host"},
};

using MadeDevice = Result<std::unique_ptr<Device>>;

std::unique_ptr<Team> make_team(const ComputeTask& task) {
  return std::make_unique<Team>(Team::Options{.workers = task.threads, .cores = task.cores});
}

MadeDevice make_cuda(const AgentContext& context, const ComputeKernels& kernels) {
  const ComputeTask& task = *context.compute;
  TIERD_ASSIGN(const cuda::Backend* const backend, load_cuda());
  cuda::DeviceOptions options = cuda::DeviceOptions::of(context);
  options.ordinal = static_cast<int>(context.get<int64_t>("device"));
  options.blas_rows = static_cast<uint32_t>(context.get<int64_t>("blas_rows"));
  return backend->create(options, context.pools, context.clock, task.plan,
                         std::make_unique<TeamWork>(kernels, make_team(task)));
}

MadeDevice make_host(const AgentContext& context, const ComputeKernels& kernels, uint64_t link_rate) {
  const ComputeTask& task = *context.compute;
  HostDevice::Link link;
  if (!task.described) {
    link.bytes_per_second = link_rate;
    link.latency_ns = static_cast<uint64_t>(context.get<int64_t>("link_latency_us")) * 1000;
  }
  TIERD_ASSIGN(std::unique_ptr<HostDevice> device,
               HostDevice::create(DramAgent::Options::of(context), link, context.pools, context.clock,
                                  task.plan, kernels, make_team(task)));
  return std::unique_ptr<Device>(std::move(device));
}

// With a modelled clock the choice of the device changes no time, so the host computes.
MadeDevice make_device(const AgentContext& context, const ComputeKernels& kernels, uint64_t link_rate) {
  const std::string& backend = context.get<std::string>("backend");
  if (backend == "host" || context.compute->described) return make_host(context, kernels, link_rate);
  MadeDevice device = make_cuda(context, kernels);
  const bool answers = device.code() != Code::not_found && device.code() != Code::unsupported;
  if (answers || backend == "cuda") return device;
  return make_host(context, kernels, link_rate);
}

Result<MadeAgent> make(const AgentContext& context) {
  if (!context.compute)
    return Error{Code::invalid_argument, "gpu", "the agent needs a computation, but the run has none for it"};
  TIERD_ASSIGN(const ComputeKernels* const kernels, choose_kernels(context.compute->kernels));
  TIERD_ASSIGN(const uint64_t link_rate,
               parse_bytes(context.get<std::string>("link_rate"), context.table + ".link_rate"));
  TIERD_ASSIGN(std::unique_ptr<Device> device, make_device(context, *kernels, link_rate));
  TIERD_ASSIGN(MadeAgent made, made_with(std::move(device), context));
  made.link_rate = static_cast<double>(link_rate);
  return made;
}

}  // namespace
}  // namespace tierd

TIERD_AGENT("gpu", "memory of a GPU, and the GPU that computes from it; without one, the host emulates both",
            tierd::serves(tierd::Op::run) | tierd::serves(tierd::Op::move) |
                tierd::serves(tierd::Op::resize) | tierd::kRecodes | tierd::kMemoryApart |
                tierd::kReadsDirectly | tierd::kJoinsRuns,
            tierd::kParams, tierd::make)
