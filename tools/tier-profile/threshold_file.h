// How large the inputs of operators are that are cut into channels, over a text: thresholds of predictor
// top-k for every sparsity (ActiveFlow, 3.1). Of each such site SITE a safetensors file holds
//
//   SITE.thresholds  [101]  F32  quantiles of |x| over all inputs of all tokens: 0, 1, ... 100 %
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/store/safetensors_writer.h"
#include "tools/tier-profile/profile_file.h"

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

// `sites` outlives it.
class ThresholdFile final : public ProfileFile {
 public:
  static Result<std::unique_ptr<ProfileFile>> create(const std::string& path, const std::vector<Site>& sites);
  void measured(SiteId site, const MeasuredPass& pass) override;
  Status finish() override;

 private:
  ThresholdFile(SafetensorsWriter writer, const std::vector<Site>& sites);

  SafetensorsWriter writer_;
  const std::vector<Site>& sites_;
  std::vector<Magnitudes> magnitudes_;  // [sites]
};

}  // namespace tierd
