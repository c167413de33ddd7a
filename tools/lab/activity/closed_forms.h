// The expected statistics of a profile's process, without drawing: functions of the profile, with which drawn
// statistics are compared.
#pragma once

#include <cstdint>

#include "tools/lab/activity/profile.h"

namespace tierd {

// Return E[p], and the share of active neurons that an independent draw has, too: E[p^2] / E[p].
double mean_rate(const BetaRates& rates);
double lasting_overlap(const BetaRates& rates);

// Returns the share of a token's active neurons that are active `distance` tokens later, too: with
// probability lambda^distance an event has not been drawn again, else the draw is independent.
double overlap_after(const BetaRates& rates, double lambda, uint32_t distance);

// Returns the share of a layer's neurons that any of `tokens` consecutive tokens uses: 1 -
// E[(1-p)(1-(1-lambda)p)^(k-1)].
double used_within(const BetaRates& rates, double lambda, uint32_t tokens);
// Returns the share that a token uses and none of the `window` tokens before it.
double new_in_token(const BetaRates& rates, double lambda, uint32_t window);

// Returns the share of all uses by the most active share of the neurons, with known rates.
double share_of_hottest(const BetaRates& rates, double share);

// Returns P(copy is active
// parent is active) for the hottest share of parents; the distance of their events is uniform within `shift`
// to either side, round a circle.
double copy_follows(const BetaRates& rates, double shift, double hottest);

// For normal hidden states x and y of correlation `cosine`: returns the share of y's largest `kept` channels
// by absolute value that are among x's largest, too.
double top_k_precision(double cosine, double kept);

}  // namespace tierd
