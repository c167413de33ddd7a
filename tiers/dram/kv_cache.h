// The KV cache: [layer][sequence][position][kv_dim], keys and values apart.
#pragma once

#include <cstdint>

#include "core/agent/program.h"
#include "tiers/compute/kernels.h"
#include "tiers/dram/reserved_memory.h"

namespace tierd {

class KvCache {
 public:
  static Result<KvCache> create(const ComputePlan& plan);

  // Stores one row: kv_dim keys and kv_dim values, rounded to f16 in a cache of f16.
  void store(const ComputeKernels& kernels, uint32_t layer, uint32_t sequence, uint32_t position,
             const float* keys, const float* values);
  // Attention of one query head over the last `window` positions (0: all), see ComputeKernels::attend_f16.
  // `scratch`: context floats.
  void attend(const ComputeKernels& kernels, uint32_t layer, uint32_t window, uint32_t sequence,
              uint32_t position, uint32_t head, const ScoreShape& scores, const float* query, float* scratch,
              float* out) const;

 private:
  KvCache(ReservedMemory memory, const ComputePlan& plan);
  uint64_t index(uint32_t layer, uint32_t sequence, uint32_t position) const;

  ReservedMemory memory_;
  AttentionShape shape_;
  uint32_t context_;
  uint32_t sequences_;
  KvEncoding encoding_;
  uint64_t values_;  // elements before the first value
};

}  // namespace tierd
