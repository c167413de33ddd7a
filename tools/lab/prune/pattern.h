// The share of weights that become zero, of each row, of the matrix or of each small group.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd {

// How many weights become zero. With `group` 0 it is a share, of each row or of the matrix, by the method.
// Else it is N:M as in the papers: of each `group` (M) consecutive inputs of a row, `kept` (N) stay and the
// others become zero.
struct Pattern {
  double sparsity = 0.5;  // above 0, below 1
  uint32_t kept = 0;
  uint32_t group = 0;

  bool in_groups() const { return group != 0; }
  // Returns how many of so many weights become zero: the share, rounded down as in the published programs.
  uint64_t pruned_of(uint64_t weights) const;
};

// The largest group: the block of columns that SparseGPT processes at once.
inline constexpr uint32_t kMostOfGroup = 128;

// Parses "2:4". Error: invalid_argument naming --nm.
Result<Pattern> parse_groups(std::string_view text);
// Error: invalid_argument naming --share.
Result<Pattern> pattern_of_share(double sparsity);

// Sets pruned[i] to 1 for the `count` smallest of the scores, which are not NaN, and to 0 for the others;
// among equal ones the first are chosen. Both have the same length, at least `count`.
void mark_smallest(std::span<const float> scores, uint64_t count, std::span<uint8_t> pruned);
// The same inside each group of the pattern; the length is a multiple of the group.
void mark_in_groups(std::span<const float> scores, const Pattern& pattern, std::span<uint8_t> pruned);

}  // namespace tierd
