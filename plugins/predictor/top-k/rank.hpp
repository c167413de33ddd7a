// Finds the magnitude of a rank, which separates the used inputs of an operator from the others. Called for
// every site of every step while the compute threads wait.
#ifndef TIERD_TOP_K_RANK_HPP
#define TIERD_TOP_K_RANK_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tierd {

class Rank {
 public:
  // Returns the value at index `rank` (less than n) of the sorted magnitudes. Magnitudes are not negative;
  // NaN is the greatest.
  float of(const float* magnitudes, uint32_t n, uint32_t rank) {
    // The bits of non-negative floats are in the order of their values. The floats are first classified by
    // exponent and some more bits; then only the class of the wanted one is searched.
    counts_.assign(kClasses, 0);
    for (uint32_t i = 0; i < n; ++i) ++counts_[bits(magnitudes[i]) >> kShift];
    uint32_t at = 0;
    for (; rank >= counts_[at]; ++at) rank -= counts_[at];
    together_.resize(n);
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; ++i) {
      together_[found] = bits(magnitudes[i]);  // overwritten if it is of another class
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

  // Each call fills these anew; they are members so that their memory is reused.
  std::vector<uint32_t> counts_;
  std::vector<uint32_t> together_;
};

}  // namespace tierd
#endif
