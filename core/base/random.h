// Seeded random numbers that are the same on every machine and compiler, which std::uniform_* does not
// guarantee.
#pragma once

#include <cstdint>
#include <iterator>

namespace tierd {

// A bijection of 64 bits: the finaliser of splitmix64 (Steele, Lea and Flood 2014).
constexpr uint64_t mix_bits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Returns number `counter` of the sequence of splitmix64 that begins at `seed`.
constexpr uint64_t splitmix64(uint64_t seed, uint64_t counter = 0) {
  return mix_bits(seed + (counter + 1) * 0x9e3779b97f4a7c15ull);
}

// A small generator (splitmix64 seeding xoshiro256++, Blackman and Vigna 2019).
class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t i = 0; i < std::size(state_); ++i) state_[i] = splitmix64(seed, i);
  }

  uint64_t next() {
    const uint64_t result = rotate(state_[0] + state_[3], 23) + state_[0];
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound), bound > 0. The bias of the multiply-shift is below 2^-32 for the bounds used here.
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(((next() >> 32) * bound) >> 32); }
  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // Uniform in [-1, 1).
  float symmetric() { return static_cast<float>(2.0 * uniform() - 1.0); }

 private:
  static uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  uint64_t state_[4];
};

}  // namespace tierd
