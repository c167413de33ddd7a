// Ways in which a cache may split its bytes among the editions. Optional; C++17, header-only.
#ifndef TIERD_POLICY_SPLIT_HPP
#define TIERD_POLICY_SPLIT_HPP

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tierd/plugin.hpp"

namespace tierd {

// Spreads `bytes` over the editions in proportion to wants(e), in neurons; editions with wants(e) == 0 are
// unchanged. Returns the bytes left. slots[e]: out, at most most[e].
template <class Wants>
uint64_t split_in_proportion(const Host& host, uint64_t bytes, const std::vector<uint32_t>& most,
                             uint32_t* slots, Wants wants) {
  double whole = 0;
  for (uint32_t e = 0; e < host.n_editions(); ++e)
    whole += static_cast<double>(wants(e)) * static_cast<double>(host.edition(e).bytes);
  if (whole == 0) return bytes;
  const double share = static_cast<double>(bytes) / whole;
  const auto take = [&](uint32_t e, uint64_t wanted) {
    const uint64_t slot_bytes = host.edition(e).bytes;
    const uint64_t taken = std::min({wanted, uint64_t{most[e] - slots[e]}, bytes / slot_bytes});
    slots[e] += static_cast<uint32_t>(taken);
    bytes -= taken * slot_bytes;
    return taken != 0;
  };
  for (uint32_t e = 0; e < host.n_editions(); ++e) {
    if (wants(e) == 0) continue;
    slots[e] = 0;
    take(e, static_cast<uint64_t>(share * static_cast<double>(wants(e))));
  }
  // Distributes the remainder of the rounding, one slot an edition and round.
  for (bool gave = true; gave;) {
    gave = false;
    for (uint32_t e = 0; e < host.n_editions(); ++e) {
      if (wants(e) != 0) gave = take(e, 1) || gave;
    }
  }
  return bytes;
}

// Gives every edition that `takes_part(e)` selects the same share of its neurons.
template <class Selector>
uint64_t split_evenly(const Host& host, uint64_t bytes, const std::vector<uint32_t>& most, uint32_t* slots,
                      Selector takes_part) {
  return split_in_proportion(host, bytes, most, slots,
                             [&](uint32_t e) { return takes_part(e) ? host.edition(e).n : 0u; });
}

// The `share` of a cache that treats all editions alike.
inline void split_evenly(const Host& host, uint64_t bytes, uint32_t* max_slots) {
  const std::vector<uint32_t> most(max_slots, max_slots + host.n_editions());
  std::fill_n(max_slots, host.n_editions(), 0u);
  split_evenly(host, bytes, most, max_slots, [](uint32_t) { return true; });
}

// Returns whether a step uses only some of a site's neurons: not of a site cut into rows, because neurons,
// channels and experts are chosen for each token. (An embedding is used in part too, but by rows.)
inline bool used_in_part(const tierd_site_view& site) {
  return site.axis != TIERD_AXIS_ROW;
}

// Returns whether the edition belongs to one expert, which a step passes only if a router has chosen it.
inline bool of_expert(const Host& host, uint32_t e) {
  return host.expert(host.edition(e).site) != TIERD_NO_EXPERT;
}

// Serves first the editions of sites that a step uses whole, where a step uses others in part: each of their
// slots saves a read in every step (selective persistence). Then calls `split_rest(bytes, most, slots)`,
// which serves the sites used in part and returns the bytes left. The embedding is served last, because a
// step uses a row of it for each token: keeping all of it would save no more than the reads of those rows. If
// no site is used in part, all are treated alike. slots[e]: in, the most; out, the share.
template <class SplitRest>
void split_whole_then(const Host& host, uint64_t bytes, uint32_t* slots, SplitRest split_rest) {
  bool in_part = false;
  for (uint32_t e = 0; e < host.n_editions(); ++e) in_part = in_part || used_in_part(host.site_of(e));
  if (!in_part) return split_evenly(host, bytes, slots);
  const std::vector<uint32_t> most(slots, slots + host.n_editions());
  std::fill_n(slots, host.n_editions(), 0u);
  bytes = split_evenly(host, bytes, most, slots, [&](uint32_t e) {
    return !used_in_part(host.site_of(e)) && host.site_of(e).given == 0;
  });
  bytes = split_rest(bytes, most, slots);
  split_evenly(host, bytes, most, slots,
               [&](uint32_t e) { return !used_in_part(host.site_of(e)) && host.site_of(e).given != 0; });
}

// Splits the rest in proportion to `wants(e)`, the neurons that an edition should keep: first among the
// operators that every step passes, then among those of experts.
template <class Wants>
void split_whole_first(const Host& host, uint64_t bytes, uint32_t* slots, Wants wants) {
  split_whole_then(
      host, bytes, slots, [&](uint64_t left, const std::vector<uint32_t>& most, uint32_t* shares) {
        for (const bool of_experts : {false, true}) {
          left = split_in_proportion(host, left, most, shares, [&](uint32_t e) {
            return used_in_part(host.site_of(e)) && of_expert(host, e) == of_experts ? wants(e) : 0;
          });
        }
        return left;
      });
}
inline void split_whole_first(const Host& host, uint64_t bytes, uint32_t* slots) {
  split_whole_first(host, bytes, slots, [&](uint32_t e) { return host.edition(e).n; });
}

// Gives the rest to the smallest neurons first, whole editions of them: a disk serves a small read in hardly
// less time than a large one, so a small neuron saves more time per byte. Editions of neurons of one size are
// treated alike.
inline void split_small_first(const Host& host, uint64_t bytes, uint32_t* slots) {
  split_whole_then(
      host, bytes, slots, [&](uint64_t left, const std::vector<uint32_t>& most, uint32_t* shares) {
        const auto takes_part = [&](uint32_t e) { return used_in_part(host.site_of(e)); };
        std::vector<uint64_t> sizes;
        for (uint32_t e = 0; e < host.n_editions(); ++e) {
          if (takes_part(e)) sizes.push_back(host.edition(e).bytes);
        }
        std::sort(sizes.begin(), sizes.end());
        sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
        for (const uint64_t size : sizes) {
          left = split_evenly(host, left, most, shares,
                              [&](uint32_t e) { return takes_part(e) && host.edition(e).bytes == size; });
        }
        return left;
      });
}

// For `resize`: names evictable neurons of `order` as victims until no more than `most` stay. `order`: the
// resident neurons of an edition, the first to evict first.
template <class Order>
void name_surplus(const Host& host, uint32_t edition, const Order& order, uint32_t most,
                  tierd_victims_out& victims) {
  uint64_t here = order.size();
  for (const uint32_t neuron : order) {
    if (here <= most || victims.n == victims.cap) return;
    if (!host.evictable(edition, neuron)) continue;
    victims.item[victims.n++] = {edition, neuron};
    --here;
  }
}

}  // namespace tierd
#endif
