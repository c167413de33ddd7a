// How a cache may split its bytes among the sites. Optional; C++17, header-only.
#ifndef TIERD_SPLIT_HPP
#define TIERD_SPLIT_HPP

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tierd/plugin.hpp"

namespace tierd {

// Spreads `bytes` over the sites in proportion to what `wants(s)` says, in neurons; sites that want nothing
// stay as they are. Returns what is left. slots[s]: out, at most most[s].
template <class Wants>
uint64_t split_in_proportion(const Host& host, uint64_t bytes, const std::vector<uint32_t>& most,
                             uint32_t* slots, Wants wants) {
  double whole = 0;
  for (uint32_t s = 0; s < host.n_sites(); ++s)
    whole += static_cast<double>(wants(s)) * static_cast<double>(host.site(s).enc[0].bytes);
  if (whole == 0) return bytes;
  const double share = static_cast<double>(bytes) / whole;
  const auto take = [&](uint32_t s, uint64_t wanted) {
    const uint64_t slot_bytes = host.site(s).enc[0].bytes;
    const uint64_t taken = std::min({wanted, uint64_t{most[s] - slots[s]}, bytes / slot_bytes});
    slots[s] += static_cast<uint32_t>(taken);
    bytes -= taken * slot_bytes;
    return taken != 0;
  };
  for (uint32_t s = 0; s < host.n_sites(); ++s) {
    if (wants(s) == 0) continue;
    slots[s] = 0;
    take(s, static_cast<uint64_t>(share * static_cast<double>(wants(s))));
  }
  // What rounding left over, one slot a site and round.
  for (bool gave = true; gave;) {
    gave = false;
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      if (wants(s) != 0) gave = take(s, 1) || gave;
    }
  }
  return bytes;
}

// Every site that `takes_part(tierd_site_view)` selects keeps the same share of its neurons.
template <class Selector>
uint64_t split_evenly(const Host& host, uint64_t bytes, const std::vector<uint32_t>& most, uint32_t* slots,
                      Selector takes_part) {
  return split_in_proportion(host, bytes, most, slots,
                             [&](uint32_t s) { return takes_part(host.site(s)) ? host.site(s).n : 0u; });
}

// `share` of a cache that treats all sites alike.
inline void split_evenly(const Host& host, uint64_t bytes, uint32_t* max_slots) {
  const std::vector<uint32_t> most(max_slots, max_slots + host.n_sites());
  std::fill_n(max_slots, host.n_sites(), 0u);
  split_evenly(host, bytes, most, max_slots,
               [](const tierd_site_view& site) { return site.alias_of == TIERD_NO_SITE; });
}

// Whether a step uses only some of a site's neurons: of whatever is not sliced by rows, neurons, channels or
// experts are chosen for each token. (Of an embedding too, but those are rows, one a token.)
inline bool used_in_part(const tierd_site_view& site) {
  return site.axis != TIERD_AXIS_ROW;
}

// Where a step uses some sites in part, those that it uses whole come first: a slot of theirs saves a read in
// every step (selective persistence). Then what is used in part, as `split_rest(bytes, most, slots)` does it
// and says what is left. Last the embedding, of which a step uses a row a token: all of it would save no more
// than that read. Without sites used in part all are treated alike. slots[s]: in, the most; out, the share.
template <class SplitRest>
void split_whole_then(const Host& host, uint64_t bytes, uint32_t* slots, SplitRest split_rest) {
  bool in_part = false;
  for (uint32_t s = 0; s < host.n_sites(); ++s) in_part = in_part || used_in_part(host.site(s));
  if (!in_part) return split_evenly(host, bytes, slots);
  const std::vector<uint32_t> most(slots, slots + host.n_sites());
  std::fill_n(slots, host.n_sites(), 0u);
  const auto canonical = [](const tierd_site_view& site) { return site.alias_of == TIERD_NO_SITE; };
  bytes = split_evenly(host, bytes, most, slots, [&](const tierd_site_view& site) {
    return canonical(site) && !used_in_part(site) && site.given == 0;
  });
  bytes = split_rest(bytes, most, slots);
  split_evenly(host, bytes, most, slots, [&](const tierd_site_view& site) {
    return canonical(site) && !used_in_part(site) && site.given != 0;
  });
}

// The rest in proportion to `wants(s)`, the neurons that a site would like to keep.
template <class Wants>
void split_whole_first(const Host& host, uint64_t bytes, uint32_t* slots, Wants wants) {
  split_whole_then(host, bytes, slots,
                   [&](uint64_t left, const std::vector<uint32_t>& most, uint32_t* shares) {
                     return split_in_proportion(host, left, most, shares, [&](uint32_t s) {
                       const tierd_site_view& site = host.site(s);
                       return site.alias_of == TIERD_NO_SITE && used_in_part(site) ? wants(s) : 0;
                     });
                   });
}
inline void split_whole_first(const Host& host, uint64_t bytes, uint32_t* slots) {
  split_whole_first(host, bytes, slots, [&](uint32_t s) { return host.site(s).n; });
}

// The rest to the smallest neurons first, whole sites of them: a small read takes a disk hardly less time
// than a larger one, so that it saves more of it for its bytes. Sites of neurons of one size are treated
// alike.
inline void split_small_first(const Host& host, uint64_t bytes, uint32_t* slots) {
  split_whole_then(host, bytes, slots,
                   [&](uint64_t left, const std::vector<uint32_t>& most, uint32_t* shares) {
                     const auto takes_part = [](const tierd_site_view& site) {
                       return site.alias_of == TIERD_NO_SITE && used_in_part(site);
                     };
                     std::vector<uint64_t> sizes;
                     for (uint32_t s = 0; s < host.n_sites(); ++s) {
                       if (takes_part(host.site(s))) sizes.push_back(host.site(s).enc[0].bytes);
                     }
                     std::sort(sizes.begin(), sizes.end());
                     sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
                     for (const uint64_t size : sizes) {
                       left = split_evenly(host, left, most, shares, [&](const tierd_site_view& site) {
                         return takes_part(site) && site.enc[0].bytes == size;
                       });
                     }
                     return left;
                   });
}

// For `resize`: of the neurons that a site keeps, in the order in which they should leave, names those that
// may go until no more than `most` stay.
template <class Order>
void name_surplus(const Host& host, uint32_t site, const Order& order, uint32_t most,
                  tierd_victims_out& victims) {
  uint64_t here = order.size();
  for (const uint32_t neuron : order) {
    if (here <= most || victims.n == victims.cap) return;
    if (!host.evictable(site, neuron)) continue;
    victims.item[victims.n++] = {site, neuron};
    --here;
  }
}

}  // namespace tierd
#endif
