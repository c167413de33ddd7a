// The largest channels of hidden states (hidden_states.h): a layer's active neurons are the channels of the
// largest absolute values.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/lab/activity/activity_source.h"
#include "tools/lab/activity/hidden_states.h"

namespace tierd {

class HiddenActivity final : public ActivitySource {
 public:
  struct Options {
    uint32_t layers = 1;
    uint32_t channels = 1;
    double cosine = 1;  // c
    double kept = 0.5;  // share of the channels that is active
    uint64_t seed = 1;
    uint32_t sequences = 1;
  };
  explicit HiddenActivity(const Options& options);

  uint32_t layers() const override { return states_.options().layers; }
  uint32_t neurons(uint32_t) const override { return states_.options().channels; }
  uint32_t sequences() const override { return states_.options().sequences; }
  void next_token(uint32_t sequence) override;
  ActiveBits active(uint32_t sequence, uint32_t layer) const override { return bits_[sequence][layer]; }

 private:
  HiddenStates states_;
  uint32_t kept_;                                         // number of active channels
  std::vector<std::vector<std::vector<uint64_t>>> bits_;  // [sequences][layers]
};

}  // namespace tierd
