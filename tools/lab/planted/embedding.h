// Embeddings that neighbouring tokens share in part: those of one run, and those of one document of 1024
// tokens. A text that runs through the ids thus has an input that changes as slowly as real text's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/lab/planted/profile.h"

namespace tierd {

// Makes rows and keeps the parts that the next row may share: one instance for each thread and pass.
class PlantedEmbedding {
 public:
  // `profile` must outlive this object.
  PlantedEmbedding(const PlantedProfile& profile, uint64_t seed) : profile_(profile), seed_(seed) {}

  // Writes the embedding of `token`, [d_model], of variance 1. All rows must have one width.
  void row(uint32_t token, std::span<float> out);
  // Returns the nearest token up to this one that starts a run.
  uint32_t run_of(uint32_t token) const;

 private:
  struct Part {
    uint64_t number = UINT64_MAX;
    std::vector<float> values;
  };

  const PlantedProfile& profile_;
  uint64_t seed_;
  Part document_;
  Part run_;
};

}  // namespace tierd
