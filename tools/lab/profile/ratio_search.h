// How many neurons of a network to use in each of its editions, where memory is given: M2Cache (Peng, Cao et
// al., 2024), Algorithm 1. It walks from all neurons in the edition of fewest bits to as many as fit in the
// best, and keeps the point at which the model is surest of what it writes. What a point does not use is
// dropped: better editions leave room for fewer neurons.
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

// Every point at which the shares of all editions but the last are multiples of `step` and the neurons take
// `budget` bits a value on the mean, or less where all are used; from the fewest to the most in better
// editions. With two editions it is the paper's walk: r_high += s, r_low -= s n, n = bits(high) / bits(low).
// `drops`: points that leave neurons out are among them. `bits` [editions] of a value, falling.
std::vector<EditionShares> points_of_budget(const std::vector<double>& bits, double budget, double step,
                                            bool drops);

struct RatioScore {
  EditionShares shares;
  double bits = 0;        // of a value, on the mean over all neurons
  double entropy = 0;     // UQEst, equation 2: nats, summed over the tokens that were generated
  double perplexity = 0;  // of the text; 0 where it was not asked for
};

struct RatioSearch {
  std::vector<EditionShares> points;
  std::vector<double> bits;
  std::vector<std::vector<uint32_t>> windows;  // texts
  uint32_t prompt = 32;  // tokens of each that are given; as many as it has then are generated
  bool sweeps = false;   // perplexity is measured at every point
};

// Scores each point on a runtime of its own, which `make` starts with what `apply` says and with prefill
// chunks of one token: of several rows, the better neurons of all would count as one's. `told` hears of each
// score. Errors: those of `make` and of the runs.
using MakeRuntime = std::function<Result<std::unique_ptr<Runtime>>(const EditionShares&)>;
Result<std::vector<RatioScore>> search_ratio(const RatioSearch& search, const MakeRuntime& make,
                                             const std::function<void(const RatioScore&)>& told);

// The quantizer becomes `mixed` with these shares; `low-rank` keeps as many neurons as they are together.
void apply(const EditionShares& shares, Config& config);

// The index of the least entropy, and of the least perplexity.
size_t surest(const std::vector<RatioScore>& scores);
size_t best(const std::vector<RatioScore>& scores);

// As predictor.keep and quantizer.ratios have it: the share of neurons that are used, and of a hundred of
// them those of each edition.
double kept_share(const EditionShares& shares);
std::string ratios_text(const EditionShares& shares);

}  // namespace tierd
