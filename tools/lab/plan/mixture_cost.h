// What a token costs a mixture of experts that is larger than memory, where each expert is kept, read and
// dropped whole (configs/moe-streaming.toml). Pure arithmetic: whoever asks measures the bandwidths.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/read_curve.h"

namespace tierd {

struct MixtureModel {
  uint32_t layers = 0;        // that have experts
  uint32_t experts = 0;       // of a layer
  uint32_t used = 0;          // that a layer's router chooses for a token
  uint64_t expert_bytes = 0;  // of one
  uint64_t shared_bytes = 0;  // that every token computes with: attention, routers, head
  uint64_t fixed_bytes = 0;   // of the budget, that neither of them has
  double memory_rate = 0;     // bytes a second of all threads together
  ReadCurve flash;
  double first_read = 0;  // seconds until an idle disk has answered one small read
  // The share of the chosen experts that memory has, where it is known; else the share of all that it holds,
  // which is what a cache gets out of a text without locality.
  std::optional<double> hits = {};
};

// What one token costs; times are in seconds, volumes in bytes.
struct MixtureCost {
  double kept = 0;  // the share of the experts that memory holds
  double hits = 0;  // of the chosen experts, the share that it has
  double reads = 0;
  double flash_bytes = 0;
  double streamed_bytes = 0;  // of these, what every token uses and memory does not hold
  double disk = 0;
  double compute = 0;
  double token = 0;
};

// What every token uses is kept first, experts in what remains of `budget` bytes. Experts are computed as
// they come in, the rest of a layer before the router has chosen. Nothing where the budget does not hold what
// is fixed.
std::optional<MixtureCost> mixture_cost(const MixtureModel& model, uint64_t budget);

}  // namespace tierd
