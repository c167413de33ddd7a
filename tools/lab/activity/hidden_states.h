// Hidden states that change little from layer to layer: x(l+1) = c x(l) + sqrt(1 - c^2) e, where x(0) and
// each e are normal. Each token draws its own state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tierd {

class HiddenStates {
 public:
  struct Options {
    uint32_t layers = 1;
    uint32_t channels = 1;
    double cosine = 1;  // c
    uint64_t seed = 1;
    uint32_t sequences = 1;
  };
  explicit HiddenStates(const Options& options);

  const Options& options() const { return options_; }
  // Advances a sequence to its next token; the first call begins it.
  void next_token(uint32_t sequence);
  // Returns [channels] of a sequence's present token. Valid until its next one.
  std::span<const float> state(uint32_t sequence, uint32_t layer) const {
    return std::span(sequences_[sequence].states)
        .subspan(uint64_t{layer} * options_.channels, options_.channels);
  }

 private:
  struct Sequence {
    uint64_t tokens = 0;
    std::vector<float> states;  // [layers x channels]
  };

  Options options_;
  std::vector<Sequence> sequences_;
  std::vector<double> x_;  // scratch of next_token()
};

}  // namespace tierd
