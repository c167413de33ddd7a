// Chooses how many neurons of a network to use in each of its editions for a given memory: M2Cache (Peng, Cao
// et al., 2024), Algorithm 1. It walks from all neurons in the edition of fewest bits to as many as fit in
// the best one, and keeps the point with the least entropy of the output. Neurons that a point does not use
// are dropped: better editions leave room for fewer neurons.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/config/config.h"
#include "core/run/runtime.h"

namespace tierd {

// [editions of a site] shares of all its neurons, the best edition first; together at most 1.
using EditionShares = std::vector<double>;

// Returns every point at which the shares of all editions but the last are multiples of `step` and the
// neurons use `budget` bits a value on average, or less if all are used; from the fewest to the most in
// better editions. With two editions it is the paper's walk: r_high += s, r_low -= s n, n = bits(high) /
// bits(low). `drops`: includes points that leave neurons out. `bits` [editions] of a value, falling.
std::vector<EditionShares> points_of_budget(const std::vector<double>& bits, double budget, double step,
                                            bool drops);

struct RatioScore {
  EditionShares shares;
  double bits = 0;        // of a value, averaged over all neurons
  double entropy = 0;     // UQEst, equation 2: nats, summed over the generated tokens
  double perplexity = 0;  // of the text; 0 if not measured
};

struct RatioSearch {
  std::vector<EditionShares> points;
  std::vector<double> bits;
  std::vector<std::vector<uint32_t>> windows;  // texts
  uint32_t prompt = 32;  // given tokens of each window; the rest of its length is generated
  bool sweeps = false;   // perplexity is measured at every point
};

// Scores each point on a runtime of its own, which `make` starts with the settings of apply() and with
// prefill chunks of one token: with several rows, the better neurons of all rows would count for each. `told`
// receives each score. Errors: those of `make` and of the runs.
using MakeRuntime = std::function<Result<std::unique_ptr<Runtime>>(const EditionShares&)>;
Result<std::vector<RatioScore>> search_ratio(const RatioSearch& search, const MakeRuntime& make,
                                             const std::function<void(const RatioScore&)>& told);

// Sets the quantizer to `mixed` with these shares; `low-rank` then keeps the sum of the shares.
void apply(const EditionShares& shares, Config& config);

// Returns the index of the least entropy, or of the least perplexity.
size_t surest(const std::vector<RatioScore>& scores);
size_t best(const std::vector<RatioScore>& scores);

// Returns the values for predictor.keep and quantizer.ratios: the share of neurons that are used, and the
// percentage of those in each edition.
double kept_share(const EditionShares& shares);
std::string ratios_text(const EditionShares& shares);

}  // namespace tierd
