// A mixed integer linear program to minimise, solved by CBC.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/result.h"

namespace tierd {

// Ends a solver before it proves optimality. A limit in nodes gives the same solution on every machine.
struct SolverLimit {
  double seconds = 120;
  std::optional<uint32_t> nodes;  // replaces `seconds`
};

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
  // Sets a start solution: one term for each whole number, with its value.
  void begin_with(const std::vector<Term>& values);

  struct Solution {
    std::vector<double> values;  // [columns]; empty: none was found within the limit
    double bound = 0;            // no solution costs less
    bool impossible = false;     // no values meet the constraints
  };
  // Ends when the bound is reached up to `gap` (a share of the cost), or at the limit. `waiting` is called on
  // the caller's thread a few times a second. Call it once. Error: internal, if CBC gives up.
  Result<Solution> solve(double gap, const SolverLimit& limit, const std::function<void()>& waiting);

 private:
  int column(double cost, double most, bool whole);

  struct Delete {
    void operator()(void* model) const;
  };
  std::unique_ptr<void, Delete> model_;  // CBC's; its header is not included here
};

}  // namespace tierd
