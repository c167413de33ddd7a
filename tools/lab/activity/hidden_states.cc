#include "tools/lab/activity/hidden_states.h"

#include <cmath>

#include "tools/lab/activity/normal.h"
#include "tools/lab/activity/random_bits.h"

namespace tierd {

HiddenStates::HiddenStates(const Options& options)
    : options_(options), sequences_(options.sequences), x_(options.channels) {
  for (Sequence& sequence : sequences_)
    sequence.states.assign(uint64_t{options.layers} * options.channels, 0);
}

void HiddenStates::next_token(uint32_t sequence) {
  Sequence& of = sequences_[sequence];
  const uint64_t place = uint64_t{sequence} << 32 | static_cast<uint32_t>(of.tokens++);
  const double rest = std::sqrt(1 - options_.cosine * options_.cosine);
  float* state = of.states.data();
  for (uint32_t l = 0; l < options_.layers; ++l) {
    const RandomBits random(options_.seed, DrawnFor::hidden_state, l, place);
    for (uint32_t i = 0; i < options_.channels; ++i) {
      const double e = normal_of(random.half(i));
      x_[i] = l == 0 ? e : options_.cosine * x_[i] + rest * e;
      *state++ = static_cast<float>(x_[i]);
    }
  }
}

}  // namespace tierd
