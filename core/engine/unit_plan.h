// The part of a model that one computing unit runs: its segments, its attention heads, and the tensors that
// they need. Every unit can compute neurons of every site.
#pragma once

#include <cstdint>
#include <vector>

#include "core/agent/program.h"
#include "core/store/manifest.h"

namespace tierd {

struct ModelOptions {
  uint32_t max_rows = 512;  // tokens of a prefill chunk
  uint32_t logit_rows = 1;  // rows of a batch whose logits may be wanted
  uint32_t context = 4096;  // positions of the KV cache, for each sequence
  uint32_t sequences = 1;   // slots of the KV cache
  KvEncoding kv = KvEncoding::f16;
  bool int8_activations = false;
  bool expands = false;  // some memory holds compressed neurons of the store expanded
  // Further editions that some memory holds, made of stored ones: as editions_of returns them
  // (core/store/encoding_choice.h).
  std::vector<StoredSite> recoded = {};
  bool measure = false;  // reserve room for contributions (SiteWork::contribution)
  uint32_t units = 1;    // units that compute
  uint32_t dense = 0;    // the unit that runs all segments but attention
  // Units that attend, each with KV heads of its own; empty: the dense one attends.
  std::vector<uint32_t> attention = {};
};

struct UnitRole {
  bool dense = true;
  // KV heads; the query heads follow.
  uint32_t first_head = 0;
  uint32_t heads = 0;
};

struct UnitPlan {
  ComputePlan compute;
  std::vector<uint32_t> tensors;  // by TensorId: its number among Manifest::resident
};

// Returns the plan of a unit. Its buffers are the same for every role. The caller sets ComputePlan::editions
// and the editions of its sites.
UnitPlan plan_unit(const Manifest& manifest, const ModelOptions& options, const UnitRole& role);

}  // namespace tierd
