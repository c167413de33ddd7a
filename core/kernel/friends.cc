#include "core/kernel/friends.h"

#include <algorithm>
#include <utility>

namespace tierd {

Friends::Friends(const std::vector<Site>& sites, SchedulerCounters& counters)
    : sites_(sites), counters_(counters), waiting_(sites.size()) {
  uint32_t most = 0;
  for (SiteId s = 0; s < sites.size(); ++s) {
    if (!has(s)) continue;
    waiting_[s].assign(sites[s].n, 0);
    most = std::max(most, sites[s].n);
  }
  listed_.assign(most, 0);
  taken_.assign(most, kBehindNone);
}

void Friends::pair(SiteId site, std::span<const uint32_t> neurons, std::vector<uint32_t>& behind) {
  const std::vector<uint32_t>& friends = sites_[site].friends;
  for (const uint32_t neuron : neurons) listed_[neuron] = 1;
  for (const uint32_t neuron : neurons) {
    if (std::exchange(listed_[neuron], uint8_t{0}) == 0) continue;
    const uint32_t other = friends[neuron];
    if (std::exchange(listed_[other], uint8_t{0}) == 0) continue;
    taken_[other] = neuron;
    ++counters_.friends_together;
  }
  behind.clear();
  for (const uint32_t neuron : neurons) behind.push_back(std::exchange(taken_[neuron], kBehindNone));
}

std::span<const Friends::Guest> Friends::guests(SiteId site, std::span<const uint32_t> neurons,
                                                std::span<const uint32_t> behind,
                                                const std::function<bool(uint32_t)>& absent) {
  const std::vector<uint32_t>& friends = sites_[site].friends;
  for (size_t i = 0; i < neurons.size(); ++i) {
    if (behind[i] != kBehindNone) taken_[neurons[i]] = behind[i];
  }
  guests_.clear();
  for (size_t i = 0; i < neurons.size(); ++i) {
    const uint32_t neuron = neurons[i], other = friends[neuron];
    // Taken from elsewhere itself, so that nothing of what lies behind it is read; or its friend comes
    // anyway.
    if (behind[i] != kBehindNone || taken_[other] == neuron) continue;
    if (absent(other)) {
      guests_.push_back({other, neuron});
    } else {
      ++counters_.friends_here;
    }
  }
  for (const uint32_t neuron : neurons) taken_[neuron] = kBehindNone;
  std::stable_sort(guests_.begin(), guests_.end(),
                   [](const Guest& a, const Guest& b) { return a.neuron < b.neuron; });
  guests_.erase(std::unique(guests_.begin(), guests_.end(),
                            [](const Guest& a, const Guest& b) { return a.neuron == b.neuron; }),
                guests_.end());
  return guests_;
}

void Friends::came(SiteId site, uint32_t neuron) {
  waiting_[site][neuron] = 1;
  ++counters_.friends_read;
  counters_.friends_bytes += sites_[site].slot_bytes;
}

void Friends::note_use(SiteId site, uint32_t neuron) {
  counters_.friends_used += std::exchange(waiting_[site][neuron], uint8_t{0});
}

void Friends::left(SiteId site, std::span<const uint32_t> neurons) {
  if (waiting_[site].empty()) return;
  for (const uint32_t neuron : neurons) waiting_[site][neuron] = 0;
}

}  // namespace tierd
