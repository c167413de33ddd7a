// agent-gpu.so
#include "core/agent/agent_entry.h"
#include "core/base/units.h"
#include "tiers/gpu/gpu_agent.h"
#include "tiers/gpu/host_device.h"

namespace tierd {
namespace {

constexpr tierd_param kParams[] = {
    {"link_rate", TIERD_PARAM_TEXT, 0, "0", 0, 0, nullptr,
     "bytes a second of the emulated link, as \"16 GB\"; 0: as fast as this machine copies"},
    {"link_latency_us", TIERD_PARAM_INTEGER, 0, "10", 0, 1'000'000, nullptr,
     "what each copy over it takes beside"},
};

Result<MadeAgent> make(const AgentContext& context) {
  if (!context.compute) return Error{Code::invalid_argument, "gpu", "there is nothing to compute"};
  const ComputeTask& task = *context.compute;
  TIERD_ASSIGN(const ComputeKernels* const kernels, choose_kernels(task.kernels));
  HostDevice::Link link;
  TIERD_ASSIGN(link.bytes_per_second,
               parse_bytes(context.get<std::string>("link_rate"), context.table + ".link_rate"));
  link.latency_ns = static_cast<uint64_t>(context.get<int64_t>("link_latency_us")) * 1000;
  const auto link_rate = static_cast<double>(link.bytes_per_second);
  if (task.described) link = {};
  auto team = std::make_unique<Team>(Team::Options{.workers = task.threads, .cores = task.cores});
  TIERD_ASSIGN(std::unique_ptr<HostDevice> device,
               HostDevice::create(DramAgent::Options::of(context), link, context.pools, context.clock,
                                  task.plan, *kernels, std::move(team)));
  MadeAgent made;
  made.backend = device->backend();
  made.products = device.get();
  made.link_rate = link_rate;
  made.load = [device = device.get()](uint64_t offset, std::span<const std::byte> bytes) {
    device->load(offset, bytes);
  };
  made.counts = [device = device.get()] { return device->counts(); };
  made.agent = std::make_unique<GpuAgent>(std::move(device), context.clock);
  return made;
}

}  // namespace
}  // namespace tierd

TIERD_AGENT("gpu", "memory that nobody else reaches, and a device that computes on it; emulated on the host",
            tierd::serves(tierd::Op::run) | tierd::serves(tierd::Op::move) |
                tierd::serves(tierd::Op::resize) | tierd::kMemoryApart,
            tierd::kParams, tierd::make)
