#include "tools/lab/reproduce/drawn_partition.h"

#include <utility>
#include <variant>
#include <vector>

#include "core/time/machine.h"
#include "tools/lab/activity/profile.h"
#include "tools/lab/activity/sticky_activity.h"
#include "tools/lab/partition/methods.h"
#include "tools/lab/partition/partition_file.h"

namespace tierd {
namespace {

// Tokens that are drawn of each text. As two of three events persist from token to token, they are worth
// about ten independent tokens.
constexpr uint32_t kTokens = 32;

// Nodes that the solver may visit. A limit in seconds would make the partition depend on the machine's speed.
constexpr uint32_t kNodes = 2000;

Error wrong(std::string detail) {
  return {Code::invalid_argument, "partition", std::move(detail)};
}

Result<PartitionMachine> machine_of(const RunPlan& plan) {
  TIERD_ASSIGN(const MachineDescription described, read_machine(plan.config.machine));
  const UnitDescription* const gpu = described.unit("gpu");
  const UnitDescription* const ndp = described.unit("ndp");
  const bool both = gpu != nullptr && std::holds_alternative<GpuDescription>(gpu->device) && ndp != nullptr &&
                    std::holds_alternative<NdpDimmDescription>(ndp->device);
  if (!both) return wrong(described.path + " describes no GPU as units.gpu and no DIMMs as units.ndp");
  PartitionMachine machine;
  machine.gpu_rate = std::get<GpuDescription>(gpu->device).memory_rate;
  machine.dimm_rate = std::get<NdpDimmDescription>(ndp->device).dram.streaming_rate();
  if (const auto link = described.link_to("gpu"))
    machine.sync_seconds = static_cast<double>(link->latency_ns) * 1e-9;
  for (size_t t = 0; t < plan.tiers.memories.size(); ++t) {
    const TierMemory& memory = plan.memory.tiers[t];
    const std::string& name = plan.tiers.memories[t].config.name;
    if (name == "gpu") machine.gpu_bytes = memory.arena;
    if (name == "ndp") {
      machine.dimms = memory.memories;
      machine.dimm_bytes = memory.arena / memory.memories;
    }
  }
  if (machine.gpu_bytes == 0 || machine.dimms == 0)
    return wrong("the configuration has no tiers gpu and ndp");
  return machine;
}

// Counts how often each neuron is active in the tokens of several texts.
Result<std::vector<std::vector<uint32_t>>> count_uses(const ActivityProfile& profile,
                                                      StickyActivity::Options options, uint32_t texts) {
  std::vector<std::vector<uint32_t>> uses;
  for (const uint32_t n : options.neurons) uses.emplace_back(n, 0);
  options.sequences = 1;
  for (uint32_t text = 0; text < texts; ++text, ++options.first_text) {
    TIERD_ASSIGN(StickyActivity drawn, StickyActivity::create(profile, options));
    for (uint32_t token = 0; token < kTokens; ++token) {
      drawn.next_token(0);
      for (uint32_t layer = 0; layer < drawn.layers(); ++layer) {
        for (const uint32_t neuron : list_active(drawn.active(0, layer))) ++uses[layer][neuron];
      }
    }
  }
  return uses;
}

}  // namespace

Status write_drawn_partition(const RunPlan& plan, const std::string& activity, uint32_t texts,
                             const std::string& path) {
  if (activity.empty()) return wrong("the run has no activity that could be drawn");
  TIERD_ASSIGN(const ActivityProfile profile, read_activity_profile(activity));
  PartitionProblem problem;
  TIERD_ASSIGN(problem.machine, machine_of(plan));
  // The same sites as in a run's drawing (tools/lab/activity/drawn_activity.h), so that the neurons are the
  // same.
  StickyActivity::Options drawn;
  drawn.seed = plan.config.seed;
  drawn.first_text = plan.config.sequences;
  Frequencies frequencies;
  for (SiteId site = 0; site < plan.model.sites.size(); ++site) {
    const Cut& cut = plan.model.any().sites[site].cut;
    if (!is_cut_into<Bundles>(cut) && !is_cut_into<Columns>(cut)) continue;
    drawn.neurons.push_back(plan.model.sites[site].n);
    frequencies.sites.push_back({.name = plan.model.sites[site].name,
                                 .neuron_bytes = plan.model.sites.best_of(site).slot_bytes,
                                 .frequency = {}});
  }
  TIERD_ASSIGN(const std::vector<std::vector<uint32_t>> uses, count_uses(profile, std::move(drawn), texts));
  for (size_t s = 0; s < uses.size(); ++s) {
    for (const uint32_t count : uses[s])
      frequencies.sites[s].frequency.push_back(static_cast<float>(count) /
                                               static_cast<float>(texts * kTokens));
  }
  problem.sites = frequencies.sites;
  PartitionOptions options;
  options.limit.nodes = kNodes;
  TIERD_ASSIGN(const PartitionResult made, make_partition(problem, options, [] {}));
  return write_partition(path, frequencies, made.partition);
}

}  // namespace tierd
