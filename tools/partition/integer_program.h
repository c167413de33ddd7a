// A mixed integer linear program, to be minimised, and CBC that solves it.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "core/base/result.h"

namespace tierd {

class IntegerProgram {
 public:
  struct Term {
    int column;
    double factor;
  };
  enum class Is : char { at_most = 'L', at_least = 'G', equal = 'E' };

  IntegerProgram();

  // Each returns the number of the new column, whose values are 0 to `most`.
  int number(double cost, double most = std::numeric_limits<double>::max());
  int whole_number(double cost, double most);
  void require(const std::vector<Term>& sum, Is is, double bound);
  // A solution to begin with: one term for each whole number, with its value.
  void begin_with(const std::vector<Term>& values);

  struct Solution {
    std::vector<double> values;  // [columns]; empty: none was found in time
    double bound = 0;            // no solution costs less
    bool impossible = false;     // no values meet what is required
  };
  // Ends when the bound is reached up to `gap` (a share of the cost), or after `seconds`. `waiting` is called
  // on the caller's thread some times a second. Call it once. Error: internal, where CBC gives up.
  Result<Solution> solve(double gap, double seconds, const std::function<void()>& waiting);

 private:
  int column(double cost, double most, bool whole);

  struct Delete {
    void operator()(void* model) const;
  };
  std::unique_ptr<void, Delete> model_;  // CBC's; its header stays out of this one
};

}  // namespace tierd
