// How large the inputs of operators are that are cut into channels, over a text: what predictor top-k is told
// by (ActiveFlow, 2.1 and 3). For each such site SITE a safetensors file holds
//
//   SITE.thresholds  [101]     F32  quantiles of |x| over all inputs of all tokens: 0, 1, ... 100 %
//   SITE.lost        [101]     F32  what the smallest 0, 1, ... 100 % of a token's inputs would have given:
//                                   the share of the sum of squares of what all give
//   SITE.rates       [inputs]  F32  the share of tokens for which the input is one of the larger half:
//                                   tier-convert --order goes by it
//   SITE.ahead       [9 for each distance]  F32  the share of the channels that the site uses at sparsity
//                                   0.1, ... 0.9 that the same operator uses so many layers later, from 1 on
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/formats/safetensors_writer.h"
#include "tools/lab/profile/foresight.h"
#include "tools/lab/profile/profile_file.h"

namespace tierd {

inline constexpr uint32_t kThresholds = 101;

// How often which magnitude was seen, told apart to 1/128 of itself.
class Magnitudes {
 public:
  void add(float value);
  // `share` of the values were at most so large; 0 before any was added.
  float quantile(double share) const;

 private:
  std::vector<uint64_t> counts_;  // by the upper bits of the float
  uint64_t seen_ = 0;
  float largest_ = 0;
};

// `model`: its shape_text. `sites` outlives it.
class ThresholdFile final : public ProfileFile {
 public:
  static Result<std::unique_ptr<ProfileFile>> create(const std::string& path, const std::string& model,
                                                     const SiteTable& sites);
  void measured(SiteId site, const MeasuredPass& pass) override;
  Status finish() override;
  // Says for each operator and layer, at half sparsity, how alike its inputs are to those of later layers.
  std::string report() const override;

 private:
  ThresholdFile(SafetensorsWriter writer, const SiteTable& sites);
  void count_larger(SiteId site, std::span<const float> x);

  SafetensorsWriter writer_;
  const SiteTable& sites_;
  std::vector<Magnitudes> magnitudes_;               // [sites]
  std::vector<std::vector<uint32_t>> among_larger_;  // [sites][inputs] tokens
  std::vector<uint32_t> tokens_;                     // [sites]
  std::vector<uint32_t> order_;                      // used by one function, kept for its memory
  Foresight foresight_;
};

}  // namespace tierd
