// The result of a pass that computed a site whole, compared with the prediction.
#pragma once

#include <cstdint>
#include <span>

#include "core/kernel/active_set.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/site.h"
#include "core/kernel/site_use.h"

namespace tierd {

// Copies the contributions of these neurons to each row, as the agent that computed them wrote them, into
// `contribution` [rows x neurons of the site].
void copy_contributions(const Dispatcher& dispatcher, const Site& site, uint16_t agent,
                        const ActiveSet& neurons, uint32_t rows, std::span<float> contribution);

// Adds the active and the missed neurons to `use`. `contribution`: [rows x neurons] contribution of each
// neuron. `predicted`: row masks of mask_words(rows) words by the neuron's number; NULL: every neuron was
// predicted for every row. Returns the neurons that fired, with their row masks.
ActiveSet compare_with_prediction(std::span<const float> contribution, uint32_t rows,
                                  const uint64_t* predicted, SiteUse& use);

}  // namespace tierd
