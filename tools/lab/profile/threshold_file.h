// Records the magnitudes of the inputs of operators that are cut into channels, over a text: the tables of
// the predictor top-k (ActiveFlow, 2.1 and 3). For each such site SITE a safetensors file holds
//
//   SITE.thresholds  [101]     F32  quantiles of |x| over all inputs of all tokens: 0, 1, ... 100 %
//   SITE.lost        [101]     F32  the contributions of the smallest 0, 1, ... 100 % of a token's inputs,
//                                   as a share of the sum of squares of all contributions
//   SITE.rates       [inputs]  F32  the share of tokens for which the input is one of the larger half:
//                                   the order of tier-convert --order
//   SITE.ahead       [9 for each distance]  F32  the share of the channels used by the site at sparsity
//                                   0.1, ... 0.9 that the same operator uses so many layers later, from 1 on
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/lab/profile/foresight.h"
#include "tools/lab/profile/profile_file.h"
#include "tools/lab/safetensors/safetensors_writer.h"

namespace tierd {

inline constexpr uint32_t kThresholds = 101;

// A histogram of magnitudes, with bins of 1/128 of the magnitude.
class Magnitudes {
 public:
  void add(float value);
  // Returns the magnitude that `share` of the values do not exceed; 0 before any was added.
  float quantile(double share) const;

 private:
  std::vector<uint64_t> counts_;  // by the upper bits of the float
  uint64_t seen_ = 0;
  float largest_ = 0;
};

// `model`: its shape_text. `sites` must outlive the file.
class ThresholdFile final : public ProfileFile {
 public:
  static Result<std::unique_ptr<ProfileFile>> create(const std::string& path, const std::string& model,
                                                     const SiteTable& sites);
  void measured(SiteId site, const MeasuredPass& pass) override;
  Status finish() override;
  // Returns for each operator and layer, at half sparsity, the similarity of its inputs to later layers'.
  std::string report() const override;

 private:
  ThresholdFile(SafetensorsWriter writer, const SiteTable& sites);
  void count_larger(SiteId site, std::span<const float> x);

  SafetensorsWriter writer_;
  const SiteTable& sites_;
  std::vector<Magnitudes> magnitudes_;               // [sites]
  std::vector<std::vector<uint32_t>> among_larger_;  // [sites][inputs] tokens
  std::vector<uint32_t> tokens_;                     // [sites]
  std::vector<uint32_t> order_;                      // scratch of one function, a member to keep its
                                                     // allocation
  Foresight foresight_;
};

}  // namespace tierd
