#include "tools/lab/partition/even_out.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace tierd {
namespace {

// A change moves the work of at most one neuron. The error of a wide bin's mean is the work of some dozens of
// neurons; the last few changes make the remaining difference small.
constexpr int kChanges = 1000;

// The work of a site, and the time at which it is done.
class Load {
 public:
  Load(const PartitionMachine& machine, const PartitionSite& site, const std::vector<uint8_t>& hot)
      : gpu_second_(static_cast<double>(site.neuron_bytes) / machine.gpu_rate),
        dimms_second_(static_cast<double>(site.neuron_bytes) / machine.dimm_rate / machine.dimms),
        sync_(2 * machine.sync_seconds) {
    for (size_t i = 0; i < hot.size(); ++i)
      (hot[i] != 0 ? hot_ : cold_) += static_cast<double>(site.frequency[i]);
  }

  // Returns the site's time with so much more work for the GPU, and less for the DIMMs.
  double seconds(double more) const {
    return std::max((hot_ + more) * gpu_second_ + sync_, (cold_ - more) * dimms_second_);
  }
  // Returns the change of the GPU's work that would make both times equal.
  double uneven() const {
    return (cold_ * dimms_second_ - hot_ * gpu_second_ - sync_) / (gpu_second_ + dimms_second_);
  }
  void move(double more) {
    hot_ += more;
    cold_ -= more;
  }

 private:
  double gpu_second_, dimms_second_;  // for one neuron that is always active
  double sync_;
  double hot_ = 0, cold_ = 0;  // sums of frequencies
};

struct Change {
  std::optional<uint32_t> becomes_hot, becomes_cold;
  double more = 0;  // for the GPU
};

// A site that is being evened out.
class Site {
 public:
  Site(const PartitionProblem& problem, size_t s, const std::vector<uint32_t>& order,
       std::vector<uint8_t>& hot)
      : site_(problem.sites[s]), order_(order), hot_(hot), load_(problem.machine, site_, hot) {}

  // Returns the change after which the site is done soonest; empty if none makes it sooner.
  std::optional<Change> best_change(bool room) const {
    std::vector<uint32_t> hot, cold;  // by falling frequency
    for (const uint32_t neuron : order_) (hot_[neuron] != 0 ? hot : cold).push_back(neuron);
    std::optional<Change> best;
    double soonest = load_.seconds(0);
    const auto consider = [&](std::optional<uint32_t> becomes_hot, std::optional<uint32_t> becomes_cold) {
      const double more =
          (becomes_hot ? frequency(*becomes_hot) : 0) - (becomes_cold ? frequency(*becomes_cold) : 0);
      if (load_.seconds(more) >= soonest) return;
      soonest = load_.seconds(more);
      best = Change{becomes_hot, becomes_cold, more};
    };
    const double uneven = load_.uneven();
    if (room) {
      for (const uint32_t neuron : nearest(cold, uneven)) consider(neuron, std::nullopt);
    }
    for (const uint32_t neuron : nearest(hot, -uneven)) consider(std::nullopt, neuron);
    for (const uint32_t out : hot) {
      for (const uint32_t in : nearest(cold, frequency(out) + uneven)) consider(in, out);
    }
    return best;
  }

  void make(const Change& change) {
    if (change.becomes_hot) hot_[*change.becomes_hot] = 1;
    if (change.becomes_cold) hot_[*change.becomes_cold] = 0;
    load_.move(change.more);
  }

 private:
  double frequency(uint32_t neuron) const { return site_.frequency[neuron]; }

  // Returns the neurons with the frequencies nearest to `wanted`, above and below it.
  std::vector<uint32_t> nearest(const std::vector<uint32_t>& sorted, double wanted) const {
    const auto below =
        std::ranges::partition_point(sorted, [&](uint32_t neuron) { return frequency(neuron) > wanted; });
    std::vector<uint32_t> found;
    if (below != sorted.begin()) found.push_back(*(below - 1));
    if (below != sorted.end()) found.push_back(*below);
    return found;
  }

  const PartitionSite& site_;
  const std::vector<uint32_t>& order_;
  std::vector<uint8_t>& hot_;
  Load load_;
};

}  // namespace

void even_out(const PartitionProblem& problem, const FrequencyOrder& order, HotNeurons& hot) {
  uint64_t used = 0;
  for (size_t s = 0; s < hot.size(); ++s)
    used += problem.sites[s].neuron_bytes * static_cast<uint64_t>(std::ranges::count(hot[s], uint8_t{1}));
  for (size_t s = 0; s < hot.size(); ++s) {
    const uint64_t bytes = problem.sites[s].neuron_bytes;
    Site site(problem, s, order[s], hot[s]);
    for (int i = 0; i < kChanges; ++i) {
      const std::optional<Change> change = site.best_change(used + bytes <= problem.machine.gpu_bytes);
      if (!change) break;
      site.make(*change);
      if (change->becomes_hot && !change->becomes_cold) used += bytes;
      if (change->becomes_cold && !change->becomes_hot) used -= bytes;
    }
  }
}

}  // namespace tierd
