// Cuts runs of digits into groups of three from the right, as some published expressions do. A matcher of
// expressions looks from each group to the end of its run, so that a run of n digits takes n² steps.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "core/model/text/expression.h"

namespace tierd {

class DigitGroups {
 public:
  // Returns nothing for an expression that is not one of these.
  static std::optional<DigitGroups> of(std::string_view expression);

  // Returns the positions inside `text` at which the expression cuts it, in order.
  std::vector<size_t> cuts(std::string_view text) const;

 private:
  DigitGroups(Expression runs, bool at_ends) : runs_(std::move(runs)), at_ends_(at_ends) {}

  Expression runs_;  // matches the whole runs
  bool at_ends_;     // the first group of a run begins a word, and the last ends one
};

}  // namespace tierd
