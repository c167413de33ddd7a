// What one computing unit has of a model: the segments that it runs, the heads that it attends with, and the
// tensors that it needs for that. Every unit can compute neurons of every site.
#pragma once

#include <cstdint>
#include <vector>

#include "core/agent/program.h"
#include "core/store/manifest.h"

namespace tierd {

struct ModelOptions {
  uint32_t max_rows = 512;  // tokens of a prefill chunk
  uint32_t logit_rows = 1;  // rows of a batch that may ask for logits
  uint32_t context = 4096;  // positions of the KV cache, for each sequence
  uint32_t sequences = 1;   // slots of the KV cache
  KvEncoding kv = KvEncoding::f16;
  bool int8_activations = false;
  bool expands = false;  // some memory holds expanded what the store has compressed
  // What some memory holds besides, made of what is stored: as editions_of says
  // (core/store/encoding_choice.h).
  std::vector<StoredSite> recoded = {};
  bool measure = false;  // room for what neurons contribute (SiteWork::contribution)
  uint32_t units = 1;    // that compute
  uint32_t dense = 0;    // the unit that runs all segments but attention
  // Units that attend, each with KV heads of its own; none: the dense one does.
  std::vector<uint32_t> attention = {};
};

struct UnitRole {
  bool dense = true;
  // KV heads, and the query heads that belong to them.
  uint32_t first_head = 0;
  uint32_t heads = 0;
};

struct UnitPlan {
  ComputePlan compute;
  std::vector<uint32_t> tensors;  // by TensorId: its number among Manifest::resident
};

// Its buffers are the same for every role. ComputePlan::editions and those of its sites are left to the
// caller.
UnitPlan plan_unit(const Manifest& manifest, const ModelOptions& options, const UnitRole& role);

}  // namespace tierd
