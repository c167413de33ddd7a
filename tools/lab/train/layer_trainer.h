// Trains the predictor of one layer.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/base/result.h"
#include "tools/lab/train/low_rank.h"
#include "tools/lab/train/low_rank_start.h"

namespace tierd {

struct TrainOptions {
  uint32_t epochs = 2;  // 0: the start alone
  uint32_t batch = 256;
  double learning_rate = 0.01;  // at the start; falls to 0 over all epochs
  uint64_t seed = 1;
  uint32_t threads = 0;  // 0: one a core
};

// Tokens that are read at once while the inputs are measured.
inline constexpr uint32_t kMomentTokens = 1024;

// Reads the rows of these tokens, which ascend: x [tokens x d_model], contributions [tokens x d_ff].
using ReadRows = std::function<Status(std::span<const uint32_t> tokens, std::span<float> x,
                                      std::span<float> contributions)>;
// Receives the mean loss of the first `tokens` tokens of an epoch.
using EpochProgress = std::function<void(uint32_t epoch, uint32_t tokens, double loss)>;

struct LayerTask {
  uint32_t layer = 0;  // for messages, and so that every layer has an order of tokens of its own
  uint32_t d_model = 0;
  uint32_t d_ff = 0;
  uint32_t rank = 0;    // 1 to the smaller of the two
  uint32_t tokens = 0;  // at least 1, numbered from 0
  Decision decision;
  ReadRows read;
  EpochProgress progress;
};

// Starts from the best approximation of that rank to the decision over the inputs of all tokens (start_of),
// then runs Adam on the binary cross entropy, in which all active and all inactive pairs have the same weight
// ("LLM in a flash", section 3.1). The same seed gives the same bits on machines of one kind, with any number
// of threads. Errors: those of reading; invalid_argument where the loss is no finite number; no_space without
// the threads.
Result<LowRank> train_layer(const LayerTask& task, const TrainOptions& options);

}  // namespace tierd
