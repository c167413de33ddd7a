// Predicts the time of a token for a model whose operators use some of their channels, read from flash in
// groups of layers, some of them ahead (ActiveFlow, 4.1, equations 1 to 9), and chooses sparsity, group and
// cache for a budget. Pure arithmetic: the caller measures the bandwidths.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/read_curve.h"

namespace tierd {

// An operator that every layer has.
struct ChannelOperator {
  std::string name;            // "qkv"
  uint64_t channels = 0;       // of a layer
  uint64_t channel_bytes = 0;  // as stored in the file
  bool aligned = false;        // they begin at blocks
  // The share of its used channels that the layers before predict (the paper's si); empty: not read ahead.
  std::optional<double> similarity = {};
  // [channels] in the store's order: the share of a text's tokens for which each is among the larger half of
  // the inputs; empty: not known.
  std::vector<float> rates = {};

  // For an operator of experts: the experts of a layer, and those that a token uses.
  uint32_t copies = 1;
  uint32_t passed = 1;

  double layer_bytes() const { return static_cast<double>(channels * channel_bytes * copies); }
};

// Returns the seconds of `total` bytes in pieces of `bytes` (ReadCurve::seconds), each wanted with
// probability `density`: adjacent ones are one read, and gaps up to the best length are read through, as the
// flash agent does.
double scattered_seconds(const ReadCurve& disk, double total, uint64_t bytes, bool aligned, double density);

struct CostModel {
  uint32_t layers = 0;
  std::vector<ChannelOperator> operators;
  // Bytes of the head, which a token uses whole after its layers. The part that the budget does not hold is
  // read for each token.
  uint64_t head_bytes = 0;
  // Bytes of the budget for the KV cache, activations, tables and everything but channels and the head.
  uint64_t fixed_bytes = 0;
  double memory_rate = 0;  // bytes per second of all threads together
  ReadCurve flash;
  // Seconds until an idle disk has answered one small read. An operator whose channels are requested when its
  // inputs are known waits at least this long.
  double first_read = 0;
  // Time that the predictor needs for each channel of an operator to choose under a cache-aware mask, and the
  // kernel for each channel that is read. Measured on an EPYC of 2.6 GHz for the 1.1B and the 7B shape: 43
  // and 35 ns, and about 90; with the shorter search of the mask, choosing takes 23 and 26.
  double choose_seconds = 40e-9;
  double handle_seconds = 90e-9;
  // Reads are joined over gaps; else, as in the paper, each read is one channel of all layers of the group.
  bool joins_reads = false;
  // The share of the used channels that is in the cache (hr), if known. Else it is the share of all channels
  // that the cache holds, which is what a cache achieves on a text without locality.
  std::optional<double> hits = {};

  double layer_bytes() const;
  // Returns the seconds of a token's head, with `streamed` of its bytes read from flash meanwhile.
  double head_seconds(double streamed) const;
};

// Costs are of one group and one token, in seconds, unless a comment says otherwise.
struct CostEstimate {
  double sparsity = 0;
  uint32_t group = 0;  // N; 0: no reads ahead
  // M_cl (9); without groups that of a layer, or less if there is no room for it: the used channels need not
  // all be resident at once.
  double group_bytes = 0;
  double cache_bytes = 0;
  double hits = 0;
  double load = 0;       // T_load (3), always of single reads
  double compute = 0;    // T_comp (4)
  double on_demand = 0;  // T_onload (6), of a group: equation 6 has a layer's there
  double preload = 0;    // T_preload (7)
  // Equation 1: the first group is waited for, the last one is computed without reads; no reads are joined.
  double literal_token = 0;
  double steady_token = 0;  // the first group was read during the token before
  double flash_bytes = 0;   // per token
  // The share of the disk's time for reads ahead during which the processor computes.
  double hidden = 0;
};

// Returns the seconds of a token without loss in the same budget: everything is computed, and the part that
// does not fit is read sequentially with the largest reads, beside the computing.
double lossless_token(const CostModel& model, uint64_t budget);

// `budget` in bytes. M_cl is allocated first, then the head, and the cache gets the rest; empty if even M_cl
// is too large.
std::optional<CostEstimate> estimate_cost(const CostModel& model, uint64_t budget, double sparsity,
                                          uint32_t group);

struct CostChoice {
  CostEstimate chosen;
  std::string why;  // why the search ended there
};
// The greedy search of 4.1: the sparsity, unless given, follows from the budget, 1 - M_max / S_m; then larger
// and larger groups until reading ahead takes no longer than computing, or another layer gains less than
// `least_gain` of a layer's time. Empty if nothing fits.
std::optional<CostChoice> choose_cost(const CostModel& model, uint64_t budget, uint64_t model_bytes,
                                      std::optional<double> sparsity, double least_gain);
// The same, unless a token without reads ahead is faster or nothing fits: then N = 0, which the paper does
// not try. The budget must hold fixed_bytes.
CostChoice choose_fastest(const CostModel& model, uint64_t budget, uint64_t model_bytes,
                          std::optional<double> sparsity, double least_gain);

}  // namespace tierd
