// How a cache may split its bytes among the sites. Optional; C++17, header-only.
#ifndef TIERD_SPLIT_HPP
#define TIERD_SPLIT_HPP

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tierd/plugin.hpp"

namespace tierd {

// Every site keeps the same share of its neurons: spreads `bytes` over the sites that
// `takes_part(tierd_site_view)` selects, and returns what is left. slots[s]: out, at most most[s]; those of
// other sites stay as they are.
template <class Selector>
uint64_t split_evenly(const Host& host, uint64_t bytes, const std::vector<uint32_t>& most, uint32_t* slots,
                      Selector takes_part) {
  uint64_t whole = 0;
  for (uint32_t s = 0; s < host.n_sites(); ++s) {
    if (takes_part(host.site(s))) whole += uint64_t{host.site(s).n} * host.site(s).enc[0].bytes;
  }
  if (whole == 0) return bytes;
  const double share = std::min(1.0, static_cast<double>(bytes) / static_cast<double>(whole));
  const auto take = [&](uint32_t s, uint64_t wanted) {
    const uint64_t slot_bytes = host.site(s).enc[0].bytes;
    const uint64_t taken = std::min({wanted, uint64_t{most[s] - slots[s]}, bytes / slot_bytes});
    slots[s] += static_cast<uint32_t>(taken);
    bytes -= taken * slot_bytes;
    return taken != 0;
  };
  for (uint32_t s = 0; s < host.n_sites(); ++s) {
    if (!takes_part(host.site(s))) continue;
    slots[s] = 0;
    take(s, static_cast<uint64_t>(share * host.site(s).n));
  }
  // What rounding left over, one slot a site and round.
  for (bool gave = true; gave;) {
    gave = false;
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      if (takes_part(host.site(s))) gave = take(s, 1) || gave;
    }
  }
  return bytes;
}

// `share` of a cache that treats all sites alike.
inline void split_evenly(const Host& host, uint64_t bytes, uint32_t* max_slots) {
  const std::vector<uint32_t> most(max_slots, max_slots + host.n_sites());
  std::fill_n(max_slots, host.n_sites(), 0u);
  split_evenly(host, bytes, most, max_slots,
               [](const tierd_site_view& site) { return site.alias_of == TIERD_NO_SITE; });
}

// Whether a step uses only some of a site's neurons: networks in bundles are, whose neurons are predicted.
inline bool used_in_part(const tierd_site_view& site) {
  return site.axis == TIERD_AXIS_NEURON && site.given == 0;
}

// Where a step uses some sites in part, those that it uses whole come first: a slot of theirs saves a read in
// every step (LLM in a flash, 3.1: selective persistence). Then the embedding, of which a step uses a row,
// then what is used in part. Without such sites all are treated alike. slots[s]: in, the most; out, the
// share.
inline void split_whole_first(const Host& host, uint64_t bytes, uint32_t* slots) {
  bool in_part = false;
  for (uint32_t s = 0; s < host.n_sites(); ++s) in_part = in_part || used_in_part(host.site(s));
  if (!in_part) return split_evenly(host, bytes, slots);
  const std::vector<uint32_t> most(slots, slots + host.n_sites());
  std::fill_n(slots, host.n_sites(), 0u);
  const auto spread = [&](auto takes_part) {
    bytes = split_evenly(host, bytes, most, slots, [&](const tierd_site_view& site) {
      return site.alias_of == TIERD_NO_SITE && takes_part(site);
    });
  };
  spread([](const tierd_site_view& site) { return !used_in_part(site) && site.given == 0; });
  spread([](const tierd_site_view& site) { return site.given != 0; });
  spread(used_in_part);
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
