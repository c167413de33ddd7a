// agent-ndp.so
#include "core/agent/agent_entry.h"
#include "core/base/units.h"
#include "tiers/ndp/ndp_agent.h"

namespace tierd {
namespace {

constexpr tierd_param kParams[] = {
    {"link_rate", TIERD_PARAM_TEXT, 0, "0", 0, 0, nullptr,
     "bytes per second of the emulated link over which a DIMM gets neurons of another one, as in \"25 GB\"; "
     "0: no limit"},
    {"link_latency_us", TIERD_PARAM_INTEGER, 0, "0", 0, 1'000'000, nullptr,
     "additional time of each message over the emulated link, in microseconds"},
};

Result<MadeAgent> make(const AgentContext& context) {
  if (!context.compute)
    return Error{Code::invalid_argument, "ndp", "the agent needs a computation, but the run has none for it"};
  const ComputeTask& task = *context.compute;
  TIERD_ASSIGN(const ComputeKernels* const kernels, choose_kernels(task.kernels));
  TIERD_ASSIGN(const uint64_t rate,
               parse_bytes(context.get<std::string>("link_rate"), context.table + ".link_rate"));
  EmulatedLink::Rate link;
  if (!task.described) {
    link.bytes_per_second = rate;
    link.latency_ns = static_cast<uint64_t>(context.get<int64_t>("link_latency_us")) * 1000;
  }
  TIERD_ASSIGN(
      std::unique_ptr<DramAgent> dimm,
      DramAgent::create(DramAgent::Options::of(context), context.pools, task.plan, *kernels,
                        std::make_unique<Team>(Team::Options{.workers = task.threads, .cores = task.cores})));
  TIERD_ASSIGN(std::unique_ptr<NdpAgent> agent, NdpAgent::create(std::move(dimm), link, context.clock));
  MadeAgent made;
  made.backend = kernels->name;
  made.products = &agent->dimm();
  made.link_rate = static_cast<double>(rate);
  made.counts = [dimm = &agent->dimm()] { return dimm->counts(); };
  made.agent = std::move(agent);
  return made;
}

}  // namespace
}  // namespace tierd

TIERD_AGENT("ndp", "emulates a DIMM that computes near its memory: neurons, and attention by heads",
            tierd::serves(tierd::Op::run) | tierd::serves(tierd::Op::move) |
                tierd::serves(tierd::Op::resize) | tierd::kRecodes,
            tierd::kParams, tierd::make)
