// Embeddings of which neighbouring tokens share a part: those of one run, and of one document of 1024 tokens.
// A text that runs through the ids thus has an input that changes as slowly as real text's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/lab/planted/profile.h"

namespace tierd {

// One for each thread and pass over the rows: keeps the parts that the next row will share.
class PlantedEmbedding {
 public:
  // `profile` must outlive this.
  PlantedEmbedding(const PlantedProfile& profile, uint64_t seed) : profile_(profile), seed_(seed) {}

  // The embedding of `token`, [d_model], of variance 1; always of one width.
  void row(uint32_t token, std::span<float> out);
  // The nearest token up to this one that starts a run.
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
