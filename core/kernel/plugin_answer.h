// What plugins answer is checked before anything relies on it: a wrong answer is an error that names the
// plugin, never a crash.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/site.h"
#include "core/kernel/strategies.h"
#include "tierd/views.h"

namespace tierd {

// Whether a list ascends strictly below `n`. Error: plugin_fault without origin.
Status check_neurons(std::span<const uint32_t> neurons, uint32_t n);

// The neurons that a wish names, of a site with `n`; all of them where it has no list. Replaces `neurons`.
Status neurons_of(const tierd_ahead& wish, uint32_t n, std::vector<uint32_t>& neurons);

// What a cache wants before the first step: sites with a residency of their own, ascending neurons.
struct WantedAtStart {
  SiteId site = kNoSiteId;
  std::vector<uint32_t> neurons;
};
// Asks it; a cache that does not say wants nothing. Error: plugin_fault.
Result<std::vector<WantedAtStart>> wanted_at_start(Strategy<tierd_cache_1>& cache,
                                                   const std::vector<Site>& sites);

}  // namespace tierd
