// What a token will cost a model whose operators use some of their channels only, read from flash in groups
// of layers, some of them ahead (ActiveFlow, 4.1, equations 1 to 9), and which sparsity, group and cache to
// take for a budget. Pure arithmetic: whoever asks measures the bandwidths.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/read_curve.h"

namespace tierd {

// An operator of every layer.
struct ChannelOperator {
  std::string name;            // "qkv"
  uint64_t channels = 0;       // of a layer
  uint64_t channel_bytes = 0;  // as they lie in the file
  bool aligned = false;        // and begin blocks
  // The layers before predict this share of its channels that are used (the paper's si); nothing: it is not
  // read ahead.
  std::optional<double> similarity = {};
  // [channels] in the store's order: the share of a text's tokens to which each is among the larger half of
  // the inputs; empty: not known.
  std::vector<float> rates = {};

  // Where it is an expert's, a layer has so many experts, and a token passes some of them.
  uint32_t copies = 1;
  uint32_t passed = 1;

  double layer_bytes() const { return static_cast<double>(channels * channel_bytes * copies); }
};

struct CostModel {
  uint32_t layers = 0;
  std::vector<ChannelOperator> operators;
  // The head's, which a token uses whole beside its layers. What of it the budget does not hold is read anew
  // for each token.
  uint64_t head_bytes = 0;
  // KV cache, activations, tables and all else that is neither a channel nor the head take these bytes of the
  // budget.
  uint64_t fixed_bytes = 0;
  double memory_rate = 0;  // bytes a second of all threads together
  ReadCurve flash;
  // Seconds until an idle disk has answered one small read. An operator whose channels are asked for when its
  // inputs are known waits so long, whatever it asks for.
  double first_read = 0;
  // What the predictor takes to choose under a cache-aware mask, for each channel of an operator, and the
  // kernel for each one that is read, on an EPYC of 2.6 GHz: 43 and 35 ns, and about 90, of the 1.1B and the
  // 7B shape. Since the mask's search is shorter choosing takes 23 and 26.
  double choose_seconds = 40e-9;
  double handle_seconds = 90e-9;
  // Reads are joined over gaps; else, as in the paper, each is one channel of all layers of the group.
  bool joins_reads = false;
  // The cache has this share of the channels that are used (hr), where that is known. Where it is not, the
  // share of all channels in the cache is taken, which is what a cache gets out of a text without locality.
  std::optional<double> hits = {};

  double layer_bytes() const;
  // Seconds of a token's head, of which `streamed` bytes come from flash beside the computing.
  double head_seconds(double streamed) const;
};

// The costs are those of one group and one token, in seconds, unless a comment says otherwise.
struct CostEstimate {
  double sparsity = 0;
  uint32_t group = 0;  // N; 0: nothing is read ahead
  // M_cl (9); of no group, a layer's, or less where there is no room for it: channels that are used at once
  // need not all be there at once.
  double group_bytes = 0;
  double cache_bytes = 0;
  double hits = 0;
  double load = 0;       // T_load (3), of single reads in any case
  double compute = 0;    // T_comp (4)
  double on_demand = 0;  // T_onload (6), of a group: equation 6 has a layer's there
  double preload = 0;    // T_preload (7)
  // Equation 1: the first group is waited for, the last one computed alone; no reads are joined.
  double literal_token = 0;
  double steady_token = 0;  // the first group was read while the token before was computed
  double flash_bytes = 0;   // a token
  // Something is computed during this share of the time that the disk takes for what it reads ahead.
  double hidden = 0;
};

// Seconds a token of the lossless way with the same budget: all is computed, and what does not fit is read in
// order with the largest reads, beside the computing.
double lossless_token(const CostModel& model, uint64_t budget);

// `budget` in bytes. M_cl takes what it needs, then the head, and the cache the rest; nothing where even M_cl
// is too large.
std::optional<CostEstimate> estimate_cost(const CostModel& model, uint64_t budget, double sparsity,
                                          uint32_t group);

struct CostChoice {
  CostEstimate chosen;
  std::string why;  // the search ended there
};
// The greedy search of 4.1: the sparsity, where it is not given, is that which the budget asks for,
// 1 - M_max / S_m; then ever larger groups until reading ahead takes no longer than computing, or another
// layer wins less than `least_gain` of a layer's time of it. Nothing where nothing fits.
std::optional<CostChoice> choose_cost(const CostModel& model, uint64_t budget, uint64_t model_bytes,
                                      std::optional<double> sparsity, double least_gain);
// The same, unless nothing read ahead is faster or nothing fits: N = 0 then, which the paper does not try.
// The budget holds fixed_bytes.
CostChoice choose_fastest(const CostModel& model, uint64_t budget, uint64_t model_bytes,
                          std::optional<double> sparsity, double least_gain);

}  // namespace tierd
