// The cost of a token for a mixture of experts larger than memory, of which each expert is kept, read and
// evicted as a whole (configs/moe-streaming.toml). Pure arithmetic: the caller measures the bandwidths.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/read_curve.h"

namespace tierd {

struct MixtureModel {
  uint32_t layers = 0;        // layers with experts
  uint32_t experts = 0;       // of a layer
  uint32_t used = 0;          // chosen by a layer's router for a token
  uint64_t expert_bytes = 0;  // of one
  uint64_t shared_bytes = 0;  // used by every token: attention, routers, head
  uint64_t fixed_bytes = 0;   // of the budget, for everything else
  double memory_rate = 0;     // bytes per second of all threads together
  ReadCurve flash;
  double first_read = 0;  // seconds until an idle disk has answered one small read
  // The share of the chosen experts that is resident, if known; else the share of all experts that memory
  // holds, which is what a cache achieves on a text without locality.
  std::optional<double> hits = {};
};

// The cost of one token; times in seconds, volumes in bytes.
struct MixtureCost {
  double kept = 0;  // resident share of the experts
  double hits = 0;  // resident share of the chosen experts
  double reads = 0;
  double flash_bytes = 0;
  double streamed_bytes = 0;  // of these, shared bytes that memory does not hold
  double disk = 0;
  double compute = 0;
  double token = 0;
};

// Shared bytes are kept first, experts in the rest of `budget` bytes. Experts are computed as they arrive,
// the rest of a layer before the router has chosen. Empty if the budget does not hold the fixed bytes.
std::optional<MixtureCost> mixture_cost(const MixtureModel& model, uint64_t budget);

}  // namespace tierd
