// The magnitude of a rank, which parts the inputs of an operator into those that are used and those that are
// not. Every site of every step asks for one while the compute threads wait.
#ifndef TIERD_TOP_K_RANK_HPP
#define TIERD_TOP_K_RANK_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tierd {

class Rank {
 public:
  // Returns the one of `n` magnitudes, none below zero, that `rank` (less than n) others are not above. NaN
  // is above all.
  float of(const float* magnitudes, uint32_t n, uint32_t rank) {
    // The bits of floats that are not negative are in the order of their values. First by their exponent and
    // some bits more, then among those alone that fall together with the one that is looked for.
    counts_.assign(kClasses, 0);
    for (uint32_t i = 0; i < n; ++i) ++counts_[bits(magnitudes[i]) >> kShift];
    uint32_t at = 0;
    for (; rank >= counts_[at]; ++at) rank -= counts_[at];
    together_.resize(n);
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; ++i) {
      together_[found] = bits(magnitudes[i]);  // overwritten by the next one if it is of another class
      found += together_[found] >> kShift == at ? 1 : 0;
    }
    const auto border = together_.begin() + rank;
    std::nth_element(together_.begin(), border, together_.begin() + found);
    float value;
    std::memcpy(&value, &*border, sizeof value);
    return value;
  }

 private:
  static constexpr uint32_t kShift = 19;  // leaves four bits of the mantissa
  static constexpr uint32_t kClasses = uint32_t{1} << (31 - kShift);

  static uint32_t bits(float magnitude) {
    uint32_t value;
    std::memcpy(&value, &magnitude, sizeof value);
    return value & 0x7fffffff;
  }

  // These are filled anew in each call; they are members so that their memory is reused.
  std::vector<uint32_t> counts_;
  std::vector<uint32_t> together_;
};

}  // namespace tierd
#endif
