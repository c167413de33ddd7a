// Which neurons fire together from one network to the next, over a text: what predictor state-table is told
// by (Hermes, section 4.2.1). For each site SITE that can tell, but the first one, a safetensors file holds
//
//   SITE.parents  [2 x neurons]  F32  for each neuron the two of the site before that its firing goes with
//   best, by the
//                                     correlation of both over the tokens, the better one first; -1: there is
//                                     none
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/formats/safetensors_writer.h"
#include "tools/lab/profile/profile_file.h"

namespace tierd {

// A bit for each token that has passed, for each neuron of a site.
class FiringBits {
 public:
  FiringBits(uint32_t neurons, uint64_t tokens)
      : words_((tokens + 63) / 64), bits_(words_ * neurons, 0), fired_(neurons, 0) {}

  void mark(uint32_t neuron, uint64_t token) {
    bits_[neuron * words_ + token / 64] |= uint64_t{1} << token % 64;
    ++fired_[neuron];
  }
  uint32_t neurons() const { return static_cast<uint32_t>(fired_.size()); }
  uint64_t fired(uint32_t neuron) const { return fired_[neuron]; }
  // For how many tokens both have fired.
  uint64_t together(uint32_t neuron, const FiringBits& others, uint32_t other) const;

 private:
  uint64_t words_;
  std::vector<uint64_t> bits_;   // [neurons][words_]
  std::vector<uint64_t> fired_;  // [neurons] tokens
};

// [2 x neurons] The parents of `site` among the neurons of `before`, over so many tokens, from `first` to
// `last`.
std::vector<float> parents_of(const FiringBits& site, const FiringBits& before, uint64_t tokens,
                              uint32_t first, uint32_t last);

// `model`: its shape_text; `tokens` will pass. `sites` outlives it. `quiet`: nobody sees how far it has come.
class ParentsFile final : public ProfileFile {
 public:
  static Result<std::unique_ptr<ProfileFile>> create(const std::string& path, const std::string& model,
                                                     const SiteTable& sites, uint64_t tokens, bool quiet);
  void measured(SiteId site, const MeasuredPass& pass) override;
  Status finish() override;

 private:
  ParentsFile(SafetensorsWriter writer, const SiteTable& sites, uint64_t tokens, bool quiet);

  SafetensorsWriter writer_;
  const SiteTable& sites_;
  const bool quiet_;
  std::vector<SiteId> told_;      // that can tell, in the order of a step
  std::vector<FiringBits> bits_;  // [told_]
  std::vector<uint64_t> passed_;  // [told_] tokens
};

}  // namespace tierd
