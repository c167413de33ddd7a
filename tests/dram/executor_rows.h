// Functions shared by the executor's tests.
#pragma once

#include <vector>

#include "core/agent/program.h"
#include "core/base/random.h"

namespace tierd {

using Row = std::vector<float>;

constexpr BufferId kA = 0;
constexpr BufferId kB = 1;

inline Row random_row(Random& random, uint32_t n) {
  Row row(n);
  for (float& x : row) x = random.symmetric();
  return row;
}

}  // namespace tierd
