// Random bits by counter: each word is a function of the seed and of its position, so that it is the same on
// every machine and whatever was drawn before. Words have 64 bits, since one decides for 64 neurons.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/random.h"

namespace tierd {

// The purpose of random bits. The numbers determine the values of a seed: never renumber.
enum class DrawnFor : uint32_t {
  rate = 1,
  is_copy = 2,
  parent = 3,
  shift = 4,
  context = 5,
  context_rate = 6,
  topic = 7,
  renewal = 8,
  event = 9,
  hidden_state = 10,
};

class RandomBits {
 public:
  // `layer` and `place` distinguish streams of one purpose, such as that of a token of a sequence.
  RandomBits(uint64_t seed, DrawnFor purpose, uint32_t layer, uint64_t place)
      : key_(mix_bits(mix_bits(splitmix64(seed) ^ (uint64_t{layer} << 32 | uint32_t(purpose))) ^ place)) {}

  uint64_t word(uint64_t counter) const { return splitmix64(key_, counter); }
  // Returns the upper half of a word, uniform over 32 bits.
  uint32_t half(uint64_t counter) const { return static_cast<uint32_t>(word(counter) >> 32); }
  // Returns a number uniform in [0, bound), bound > 0; its bias is below 2^-32 times the bound.
  uint32_t below(uint64_t counter, uint32_t bound) const {
    return static_cast<uint32_t>(uint64_t{half(counter)} * bound >> 32);
  }
  // Returns 64 bits, each 1 with probability `chance` / 2^32: the bits of 64 uniform numbers are drawn in
  // parallel, from the highest on, until each number is known to be below `chance` or not.
  uint64_t coins(uint64_t counter, uint64_t chance) const {
    if (chance >> 32 != 0) return ~uint64_t{0};
    uint64_t heads = 0, open = ~uint64_t{0};
    for (uint32_t bit = 32; bit-- > 0 && open != 0 && (chance & ((uint64_t{2} << bit) - 1)) != 0;) {
      const uint64_t drawn = word(counter * 32 + bit);
      if ((chance >> bit & 1) != 0) {
        heads |= open & ~drawn;
        open &= drawn;
      } else {
        open &= ~drawn;
      }
    }
    return heads;
  }

 private:
  uint64_t key_;
};

// Returns a probability in the form that `coins` takes.
inline uint64_t chance_of(double probability) {
  return static_cast<uint64_t>(std::llround(probability * 0x1p32));
}

}  // namespace tierd
