#include "tools/lab/partition/dealing.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tierd {
namespace {

// The free bytes of the DIMMs while neurons are dealt.
class Rooms {
 public:
  explicit Rooms(const PartitionMachine& machine) : left_(machine.dimms, machine.dimm_bytes) {}

  bool has(uint32_t dimm, uint64_t bytes) const { return left_[dimm] >= bytes; }
  uint64_t left(uint32_t dimm) const { return left_[dimm]; }
  void take(uint32_t dimm, uint64_t bytes) { left_[dimm] -= bytes; }

 private:
  std::vector<uint64_t> left_;
};

// Returns the sites with the largest neurons first: small neurons fill the remaining gaps.
std::vector<size_t> by_neuron_bytes(const PartitionProblem& problem) {
  std::vector<size_t> sites(problem.sites.size());
  std::iota(sites.begin(), sites.end(), size_t{0});
  std::ranges::stable_sort(sites, [&](size_t a, size_t b) {
    return problem.sites[a].neuron_bytes > problem.sites[b].neuron_bytes;
  });
  return sites;
}

Partition empty_partition(const PartitionProblem& problem, const HotNeurons& hot) {
  Partition partition(problem.sites.size());
  for (size_t s = 0; s < partition.size(); ++s) {
    partition[s].home.resize(problem.sites[s].frequency.size());
    partition[s].hot = hot[s];
  }
  return partition;
}

}  // namespace

FrequencyOrder order_by_frequency(const PartitionProblem& problem) {
  FrequencyOrder order;
  for (const PartitionSite& site : problem.sites) {
    std::vector<uint32_t>& neurons = order.emplace_back(site.frequency.size());
    std::iota(neurons.begin(), neurons.end(), 0u);
    std::ranges::sort(neurons, [&](uint32_t a, uint32_t b) {
      return site.frequency[a] != site.frequency[b] ? site.frequency[a] > site.frequency[b] : a < b;
    });
  }
  return order;
}

std::optional<Partition> deal(const PartitionProblem& problem, const FrequencyOrder& order,
                              const HotNeurons& hot) {
  Partition partition = empty_partition(problem, hot);
  const uint32_t dimms = problem.machine.dimms;
  Rooms rooms(problem.machine);
  for (const size_t s : by_neuron_bytes(problem)) {
    const PartitionSite& site = problem.sites[s];
    std::vector<double> load(dimms, 0);
    const auto give = [&](bool are_hot) {
      for (const uint32_t neuron : order[s]) {
        if ((hot[s][neuron] != 0) != are_hot) continue;
        // A neuron that never fired has no load here. In another text some of these will fire: if all were on
        // the least loaded DIMM, the others would wait for it.
        const bool by_room = are_hot || site.frequency[neuron] == 0;
        uint32_t chosen = dimms;
        for (uint32_t dimm = 0; dimm < dimms; ++dimm) {
          if (!rooms.has(dimm, site.neuron_bytes)) continue;
          if (chosen == dimms || (!by_room && load[dimm] < load[chosen]) ||
              ((by_room || load[dimm] == load[chosen]) && rooms.left(dimm) > rooms.left(chosen)))
            chosen = dimm;
        }
        if (chosen == dimms) return false;
        rooms.take(chosen, site.neuron_bytes);
        partition[s].home[neuron] = chosen;
        if (!are_hot) load[chosen] += static_cast<double>(site.frequency[neuron]);
      }
      return true;
    };
    if (!give(false) || !give(true)) return std::nullopt;
  }
  return partition;
}

std::optional<Partition> deal_at_random(const PartitionProblem& problem, const HotNeurons& hot,
                                        Random& random) {
  Partition partition = empty_partition(problem, hot);
  const uint32_t dimms = problem.machine.dimms;
  Rooms rooms(problem.machine);
  for (const size_t s : by_neuron_bytes(problem)) {
    const uint64_t bytes = problem.sites[s].neuron_bytes;
    for (uint32_t& home : partition[s].home) {
      home = random.below(dimms);
      // Tries the next DIMMs in turn, so that the loop ends when hardly any has room.
      for (uint32_t tried = 0; !rooms.has(home, bytes); ++tried) {
        if (tried == dimms) return std::nullopt;
        home = (home + 1) % dimms;
      }
      rooms.take(home, bytes);
    }
  }
  return partition;
}

}  // namespace tierd
