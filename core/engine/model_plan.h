// Turns a store's manifest into what the kernel schedules (sites) and what a computing agent runs (programs).
// This is the one place that knows how a transformer layer is put together out of sites and dense segments.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/site.h"
#include "core/program/program.h"
#include "core/store/manifest.h"

namespace tierd {

struct ModelOptions {
  uint32_t max_rows = 512;  // tokens of a prefill chunk
  uint32_t logit_rows = 1;  // rows of a batch that may ask for logits
  uint32_t context = 4096;  // positions of the KV cache, for each sequence
  uint32_t sequences = 1;   // slots of the KV cache
  KvEncoding kv = KvEncoding::f16;
  bool int8_activations = false;
  bool measure = false;  // room for what neurons contribute (SiteWork::contribution)
};

struct ModelPlan {
  SiteTable sites;  // the first is the embedding, the last the head
  ComputePlan compute;
  BufferId logits = kNoBuffer;
};

// What the kernel knows of a cut: how many neurons there are, how their results become the site's, and the
// number by which plugins are told.
void cut_site(Site& site, const Cut& cut);

// `manifest` as read_manifest checked it. TensorId n is manifest.resident[n].
ModelPlan plan_model(const Manifest& manifest, const ModelOptions& options);

}  // namespace tierd
