// What a pass that computed a site whole has shown, compared with what was predicted.
#pragma once

#include <cstdint>
#include <span>

#include "core/kernel/active_set.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/site.h"
#include "core/kernel/site_use.h"

namespace tierd {

// What these neurons gave to each row, from where the agent that computed them has written it down, into
// `contribution` [rows x neurons of the site].
void copy_contributions(const Dispatcher& dispatcher, const Site& site, uint16_t agent,
                        const ActiveSet& neurons, uint32_t rows, std::span<float> contribution);

// `contribution`: [rows x neurons] how much each neuron gave. `predicted`: for whom it was predicted, masks
// of mask_words(rows) by the neuron's number; NULL: everything for all. Adds what was active and what of it
// was missed to `use`; returns the neurons that gave something, and to whom.
ActiveSet compare_with_prediction(std::span<const float> contribution, uint32_t rows,
                                  const uint64_t* predicted, SiteUse& use);

}  // namespace tierd
