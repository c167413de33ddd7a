// Divides the capacity of each tier: what must be there, what passes through, and what is left for the cache.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/engine/model_plan.h"
#include "core/store/manifest.h"
#include "core/system/memory_limits.h"

namespace tierd {

// "auto": what there is, but no more than "all": whatever the model needs to be resident; "50%": of the
// store's tensor bytes; "2 GiB".
struct Capacity {
  enum class Kind : uint8_t { all, automatic, share, bytes } kind = Kind::all;
  double share = 1;  // of the tensor bytes
  uint64_t bytes = 0;
};
Result<Capacity> parse_capacity(std::string_view text, std::string_view origin);

// What a file's tensors for a plugin occupy.
struct TableRequest {
  std::string file;
  uint64_t bytes = 0;
};

// A tier that has memories.
struct TierRequest {
  std::string name;  // "dram": errors name tiers.NAME.capacity
  Capacity capacity = {};
  // An eighth of the tier where not everything fits, but no more than this.
  uint64_t most_staging = 64u << 20;
  double staging_share = 0;        // that share of the tier instead, where not everything fits; 0: an eighth
  uint32_t memories = 1;           // that share the tier, each with staging of its own
  bool expands = false;            // it holds expanded what the store has compressed
  bool recodes = false;            // it holds ModelOptions::recoded besides
  std::vector<UnitId> units = {};  // that compute from them, each with activations, KV cache, small tensors
  // What the process needs for all tiers is counted in one: the bounce buffers of reads, plugins' tables, and
  // the activations that so many units give whose own memory nobody else reaches.
  bool bounces = true;
  bool bounces_compressed = false;  // some reads expand what is compressed, which comes that way then
  uint32_t giving_units = 0;
  // Agents that read the store into memory that is apart: each takes memory of the host for reads to land in.
  uint32_t direct_readers = 0;
  std::vector<TableRequest> tables = {};
};

struct MemoryRequest {
  std::vector<TierRequest> tiers;
  // What they may have together, and who says so; unless `force`, more is refused.
  MemoryLimit most = {"nobody", UINT64_MAX};
  bool force = false;
  bool fit = false;  // take the least budget that would do instead of refusing a smaller one
  // `max_rows` is what is asked for: a small budget gets smaller prefill chunks.
  ModelOptions model;
  // The room of model.measure lies beside the budgets, which grow by it: all else is as without measuring.
  bool measures_beside = false;
  // The context may be halved until everything fits, but not below so many positions. 0: it may not.
  uint32_t shortest_context = 0;
};

struct TierMemory {
  uint64_t capacity = 0;
  uint64_t beside = 0;   // of it, what MemoryRequest::measures_beside adds
  uint64_t tensors = 0;  // resident small tensors of all units, padded to extents
  uint64_t tables = 0;   // of plugins
  uint64_t kv = 0;
  uint64_t activations = 0;
  uint64_t given = 0;      // activations of other tiers
  uint64_t staging = 0;    // of all memories
  uint64_t bounce = 0;     // where packed bundles are read to; 0 where every extent is a run of rows
  uint64_t direct = 0;     // where direct readers read to, of all of them
  uint64_t arena = 0;      // what the caches may fill
  uint64_t whole = 0;      // arena bytes that would hold every neuron
  uint64_t least = 0;      // the smallest capacity with which this model and context run
  bool automatic = false;  // the capacity was chosen, not given
  bool raised_to_least = false;
  uint32_t block_bytes = 0;  // of staging
  uint32_t blocks = 0;       // of each memory
  uint32_t memories = 1;

  uint64_t staging_of_memory() const { return staging / memories; }
};

struct MemoryPlan {
  std::vector<TierMemory> tiers;  // as asked
  MemoryLimit most;               // as asked
  ModelOptions model;             // as it will be: max_rows and context fitted
};

// Says that the tiers up to this one take more than there is.
Error too_much_memory(std::string_view tier, uint64_t taken, const MemoryLimit& most);

// Error: no_space, naming the least budget that would do and --fit, or what there is and --force; and the
// file, where it is plugins' tables that do not fit.
Result<MemoryPlan> plan_memory(const Manifest& manifest, MemoryRequest request);

}  // namespace tierd
