// Trains the predictor of one layer. What does it is the trainer's shared object, see trainer_library.h.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/lab/train/low_rank.h"

namespace tierd {

struct TrainOptions {
  uint32_t epochs = 2;  // 0: the start alone
  uint32_t batch = 256;
  double learning_rate = 0.01;  // at the start; falls to 0 over all epochs
  uint64_t seed = 1;
  uint32_t threads = 0;  // 0: one a core
};

// What decides whether a neuron is active: it is where weight x + bias is above 0.
struct Decision {
  std::vector<float> weight;  // [d_ff x d_model], gate where the network is gated, otherwise up
  std::vector<float> bias;    // [d_ff], less the threshold of the activation
};

// Rows of these tokens, which ascend: x [tokens x d_model], contributions [tokens x d_ff].
using ReadRows = std::function<Status(std::span<const uint32_t> tokens, std::span<float> x,
                                      std::span<float> contributions)>;
// The mean loss of the epoch up to now, after `tokens` of it.
using EpochProgress = std::function<void(uint32_t epoch, uint32_t tokens, double loss)>;

struct LayerTask {
  uint32_t layer = 0;  // for messages, and so that every layer sees the tokens in an order of its own
  uint32_t d_model = 0;
  uint32_t d_ff = 0;
  uint32_t rank = 0;    // 1 to the smaller of the two
  uint32_t tokens = 0;  // at least 1, numbered from 0
  Decision decision;
  ReadRows read;
  EpochProgress progress;
};

// Starts from the best approximation of that rank to the decision over the inputs of all tokens, then Adam on
// the binary cross entropy, in which active and inactive pairs weigh the same in all ("LLM in a flash",
// section 3.1). The same seed gives the same predictor on the same machine with as many threads. Errors:
// those of reading; invalid_argument where the loss leaves the finite numbers; internal, from libtorch.
using TrainLayer = std::function<Result<LowRank>(const LayerTask& task, const TrainOptions& options)>;

// The trainer that was built with this program. Error: unsupported where it was built without libtorch.
Result<TrainLayer> load_trainer();

}  // namespace tierd
