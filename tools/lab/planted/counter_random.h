// Random numbers by counter: each is a function of its position, so that any part of a tensor can be made
// without the parts before it.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/random.h"

namespace tierd {

// The purpose of a random number. The numbers determine the values of a seed: never renumber.
enum class Drawn : uint32_t {
  features = 1,
  thresholds = 2,
  directions = 3,
  up_noise = 4,
  down = 5,
  q = 6,
  k = 7,
  v = 8,
  o = 9,
  position = 10,
  document = 11,
  run = 12,
  run_start = 13,
  word = 14,
  prompt = 15,
  sample = 16,
  gate_sample = 17,
  qkv_rates = 18,
  o_rates = 19,
  up_rates = 20,
  down_rates = 21,
};

// Two words a row: with one word, rows of a large tensor would be overlapping parts of one sequence.
struct RandomKey {
  uint32_t a = 0;
  uint32_t b = 0;
};

// Applies splitmix64 to seed, layer and tensor, then to the row.
inline RandomKey random_key(uint64_t seed, uint32_t layer, Drawn tensor, uint64_t row) {
  const uint64_t place = uint64_t{layer} << 32 | static_cast<uint32_t>(tensor);
  const uint64_t key = splitmix64(splitmix64(splitmix64(seed) ^ place) ^ row);
  return {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

// A bijection of 32 bits ("lowbias32", Wellons 2018).
inline uint32_t mix32(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

inline uint32_t random_word(RandomKey key, uint32_t counter) {
  return mix32(mix32(counter + key.a) + key.b);
}

// Fills `out` with normal numbers of mean 0 and deviation 1 (Box and Muller), from counter 0 on.
void fill_normal(RandomKey key, std::span<float> out);

}  // namespace tierd
