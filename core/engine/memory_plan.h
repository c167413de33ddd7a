// Divides the capacity of each tier into fixed memory, staging, and the arena for the cache.
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

// The text of a capacity. "auto": the available memory, but no more than "all"; "all": everything that the
// model needs to be resident; "50%": of the store's tensor bytes; "2 GiB".
struct Capacity {
  enum class Kind : uint8_t { all, automatic, share, bytes } kind = Kind::all;
  double share = 1;  // of the tensor bytes
  uint64_t bytes = 0;
};
Result<Capacity> parse_capacity(std::string_view text, std::string_view origin);

// The bytes of a file's tensors for a plugin.
struct TableRequest {
  std::string file;
  uint64_t bytes = 0;
};

// A tier that has memories.
struct TierRequest {
  std::string name;  // "dram": errors name tiers.NAME.capacity
  Capacity capacity = {};
  // Staging is an eighth of the tier if not everything fits, but no more than this.
  uint64_t most_staging = 64u << 20;
  double staging_share = 0;        // replaces that eighth, as a share of the tier; 0: an eighth
  uint32_t memories = 1;           // memories that share the tier, each with staging of its own
  bool expands = false;            // it holds compressed neurons of the store expanded
  bool recodes = false;            // it also holds ModelOptions::recoded
  std::vector<UnitId> units = {};  // that compute from them; each has activations, KV cache, small tensors
  // One tier holds what the process needs for all tiers: the bounce buffers of reads, plugins' tables, and
  // the given activations of units whose memory is apart (`giving_units`).
  bool bounces = true;
  bool bounces_compressed = false;  // some reads expand compressed neurons, through the bounce buffer
  uint32_t giving_units = 0;
  // Agents that read the store into memory that is apart: each needs bounce memory of the host.
  uint32_t direct_readers = 0;
  std::vector<TableRequest> tables = {};
};

struct MemoryRequest {
  std::vector<TierRequest> tiers;
  // The limit of their sum, and its source; more is refused unless `force`.
  MemoryLimit most = {"nobody", UINT64_MAX};
  bool force = false;
  bool fit = false;  // raise a budget that is too small to the least instead of refusing it
  // `max_rows` is the wish: a small budget gets smaller prefill chunks.
  ModelOptions model;
  // The room of model.measure is added to the budgets; everything else is planned as without measuring.
  bool measures_beside = false;
  // The context may be halved until everything fits, but not below this many positions. 0: it may not.
  uint32_t shortest_context = 0;
};

struct TierMemory {
  uint64_t capacity = 0;
  uint64_t beside = 0;   // of `capacity`, the bytes added by MemoryRequest::measures_beside
  uint64_t tensors = 0;  // resident small tensors of all units, padded to extents
  uint64_t tables = 0;   // of plugins
  uint64_t kv = 0;
  uint64_t activations = 0;
  uint64_t given = 0;      // activations of other tiers
  uint64_t staging = 0;    // of all memories
  uint64_t bounce = 0;     // bounce buffer of reads of packed bundles; 0 if all extents are aligned
  uint64_t direct = 0;     // bounce buffers of all direct readers
  uint64_t arena = 0;      // bytes for the caches
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
  std::vector<TierMemory> tiers;  // as requested
  MemoryLimit most;               // as requested
  ModelOptions model;             // with the final max_rows and context
};

// Returns the error that the tiers up to this one take more than the available memory.
Error too_much_memory(std::string_view tier, uint64_t taken, const MemoryLimit& most);

// Plans the budgets. Error: no_space, naming the least sufficient budget and --fit, or the available memory
// and --force; and the file, if plugins' tables do not fit.
Result<MemoryPlan> plan_memory(const Manifest& manifest, MemoryRequest request);

}  // namespace tierd
