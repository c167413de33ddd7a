// What a profile's process does on the mean, without drawing anything: its statistics as functions of the
// profile, which drawn ones are compared with.
#pragma once

#include <cstdint>

#include "tools/lab/activity/profile.h"

namespace tierd {

// E[p], and of the active neurons the share that another, independent draw has as well: E[p^2] / E[p].
double mean_rate(const BetaRates& rates);
double lasting_overlap(const BetaRates& rates);

// The share of a token's active neurons that the one `distance` tokens later has, too: with probability
// lambda^distance nothing was drawn anew, and else it is an independent draw.
double overlap_after(const BetaRates& rates, double lambda, uint32_t distance);

// The share of a layer's neurons that any of `tokens` consecutive ones uses: 1 -
// E[(1-p)(1-(1-lambda)p)^(k-1)].
double used_within(const BetaRates& rates, double lambda, uint32_t tokens);
// Those that a token uses and none of the `window` tokens before it.
double new_in_token(const BetaRates& rates, double lambda, uint32_t window);

// The share of all uses that falls to the most active share of the neurons, where rates are known.
double share_of_hottest(const BetaRates& rates, double share);

// P(copy is active | what it copies is), among the hottest share of what is copied; the distance of their
// events is uniform within `shift` to either side, round a circle.
double copy_follows(const BetaRates& rates, double shift, double hottest);

// Hidden states x and y of correlation `cosine`, normal: of the largest share `kept` by absolute value in y,
// those that are among the largest in x as well.
double top_k_precision(double cosine, double kept);

}  // namespace tierd
