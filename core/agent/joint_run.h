// Splits a joint run (Payload::sites) into runs of single sites.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/agent/message.h"

namespace tierd {

// Calls `run(message, payload, index)` with the run of each site, in order, as if each had been posted alone;
// with the message itself if it is about one site. Only the last run has the gives.
template <class Run>
void each_site(const Message& message, const Payload& payload, Run&& run) {
  if (payload.sites.empty()) return run(message, payload, size_t{0});
  std::span<const Unit> units = payload.units;
  for (size_t i = 0; i < payload.sites.size(); ++i) {
    const SiteRun& of = payload.sites[i];
    const bool last = i + 1 == payload.sites.size();
    Message one = message;
    one.site = of.site;
    one.edition = of.edition;
    one.n_units = of.n_units;
    one.flags = static_cast<uint8_t>(of.flags);
    one.n_sites = 0;
    one.n_gives = last ? message.n_gives : uint8_t{0};
    Payload its = payload;
    its.sites = {};
    its.units = units.first(std::min<size_t>(of.n_units, units.size()));
    if (!last) its.gives = {};
    units = units.subspan(its.units.size());
    run(one, its, i);
  }
}

}  // namespace tierd
