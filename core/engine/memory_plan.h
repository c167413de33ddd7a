// Divides the DRAM tier's capacity: what must be there, what passes through, and what is left for the cache.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/engine/model_plan.h"
#include "core/store/manifest.h"

namespace tierd {

// "all": whatever the model needs to be resident; "50%": of the store's tensor bytes; "2 GiB".
struct Capacity {
  enum class Kind : uint8_t { all, share, bytes } kind = Kind::all;
  double share = 1;  // of the tensor bytes
  uint64_t bytes = 0;
};
Result<Capacity> parse_capacity(std::string_view text, std::string_view origin);

// What a file's tensors for a plugin occupy.
struct TableRequest {
  std::string file;
  uint64_t bytes = 0;
};

struct MemoryRequest {
  Capacity capacity;
  uint64_t most_staging = 64u << 20;
  bool fit = false;  // take the least budget that would do instead of refusing a smaller one
  std::vector<TableRequest> tables;
  // Its units share the tier, each with activations, staging and small tensors of its own. `max_rows` is what
  // is asked for: a small budget gets smaller prefill chunks.
  ModelOptions model;
};

struct MemoryPlan {
  uint64_t capacity = 0;
  uint64_t tensors = 0;  // resident small tensors of all units, padded to extents
  uint64_t tables = 0;   // of plugins
  uint64_t kv = 0;
  uint64_t activations = 0;
  uint64_t staging = 0;
  uint64_t bounce = 0;  // where packed bundles are read to; 0 where every extent is a run of rows
  uint64_t arena = 0;   // what the cache may fill
  uint64_t whole = 0;   // arena bytes that would hold every neuron
  uint64_t least = 0;   // the smallest capacity with which this model and context run
  bool raised_to_least = false;
  uint32_t block_bytes = 0;  // of staging
  uint32_t blocks = 0;       // of each unit
  ModelOptions model;        // as it will be: max_rows fitted
};

// Error: no_space, naming the least budget that would do and --fit; and the file, where it is plugins' tables
// that do not fit.
Result<MemoryPlan> plan_memory(const Manifest& manifest, const MemoryRequest& request);

}  // namespace tierd
