// Records over a text which neurons fire together from one network to the next: the tables of the predictor
// state-table (Hermes, section 4.2.1). For each measurable site SITE but the first one, a safetensors file
// holds
//
//   SITE.parents  [2 x neurons]  F32  for each neuron the two neurons of the site before whose firing
//                                     correlates best with its own over the tokens, the best first;
//                                     -1: there is none
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/lab/profile/profile_file.h"
#include "tools/lab/safetensors/safetensors_writer.h"

namespace tierd {

// A bit for each token and each neuron of a site.
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
  // Returns for how many tokens both have fired.
  uint64_t together(uint32_t neuron, const FiringBits& others, uint32_t other) const;

 private:
  uint64_t words_;
  std::vector<uint64_t> bits_;   // [neurons][words_]
  std::vector<uint64_t> fired_;  // [neurons] tokens
};

// Returns [2 x neurons] the parents among `before` of neurons `first` to `last` of `site`, over the tokens.
std::vector<float> parents_of(const FiringBits& site, const FiringBits& before, uint64_t tokens,
                              uint32_t first, uint32_t last);

// `model`: its shape_text; `tokens` will be measured. `sites` must outlive the file. `quiet`: no progress.
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
  std::vector<SiteId> told_;      // measurable sites, in the order of a step
  std::vector<FiringBits> bits_;  // [told_]
  std::vector<uint64_t> passed_;  // [told_] tokens
};

}  // namespace tierd
