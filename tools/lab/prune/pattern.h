// Which share of a matrix becomes zero, and whether each row, the whole matrix or each small group has it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd {

// Pattern says how many weights become zero. With `group` 0 it is a share of them, of the rows or of the
// matrix, as the method says. Else it is N:M as the papers write it: of each `group` (M) consecutive inputs
// of a row `kept` (N) stay and the others become zero.
struct Pattern {
  double sparsity = 0.5;  // above 0, below 1
  uint32_t kept = 0;
  uint32_t group = 0;

  bool in_groups() const { return group != 0; }
  // How many of so many weights become zero: the share, rounded down as the published programs do.
  uint64_t pruned_of(uint64_t weights) const;
};

// What SparseGPT takes at once is the most that a group can have.
inline constexpr uint32_t kMostOfGroup = 128;

// "2:4". Error: invalid_argument naming --nm.
Result<Pattern> parse_groups(std::string_view text);
// Error: invalid_argument naming --sparsity.
Result<Pattern> pattern_of_share(double sparsity);

// Sets pruned[i] to 1 for the `count` smallest of the scores, which are not NaN, and to 0 for the others; of
// equal ones the first are taken. Both have the same length, `count` is at most that.
void mark_smallest(std::span<const float> scores, uint64_t count, std::span<uint8_t> pruned);
// The same inside each group of the pattern; the length is a multiple of it.
void mark_in_groups(std::span<const float> scores, const Pattern& pattern, std::span<uint8_t> pruned);

}  // namespace tierd
