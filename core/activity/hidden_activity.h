// Which channels are the largest, of hidden states that change little from layer to layer:
// x(l+1) = c x(l) + sqrt(1 - c^2) e, where x(0) and each e are normal. A layer's active neurons are the
// channels of the largest absolute values. Each token draws a state of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "core/activity/activity_source.h"

namespace tierd {

class HiddenActivity final : public ActivitySource {
 public:
  struct Options {
    uint32_t layers = 1;
    uint32_t channels = 1;
    double cosine = 1;  // c
    double kept = 0.5;  // the share of the channels that is active
    uint64_t seed = 1;
    uint32_t sequences = 1;
  };
  explicit HiddenActivity(const Options& options);

  uint32_t layers() const override { return options_.layers; }
  uint32_t neurons(uint32_t) const override { return options_.channels; }
  uint32_t sequences() const override { return options_.sequences; }
  void next_token(uint32_t sequence) override;
  ActiveBits active(uint32_t sequence, uint32_t layer) const override {
    return sequences_[sequence].bits[layer];
  }

 private:
  struct Sequence {
    uint64_t tokens = 0;
    std::vector<std::vector<uint64_t>> bits;  // [layers]
  };

  Options options_;
  std::vector<Sequence> sequences_;
};

}  // namespace tierd
