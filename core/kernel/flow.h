// The units that do the dense work around a site. Part of the model's plan, the same in every pass.
#pragma once

#include <cstdint>
#include <vector>

namespace tierd {

// A unit is numbered by its place in Topology::units.
using UnitId = uint16_t;
inline constexpr UnitId kNoUnit = UINT16_MAX;

// Columns of a matrix of activations, and the unit that has or needs them.
struct UnitColumns {
  UnitId unit = 0;
  uint32_t first = 0;
  uint32_t count = UINT32_MAX;  // clipped to the width of the matrix
};

// By default unit 0 does everything.
struct Flow {
  // The columns of the site's input that each unit has; together they are the whole input, without overlap. A
  // unit that computes neurons takes the columns that it lacks.
  std::vector<UnitColumns> input = {{}};
  // Whether the segment before computes the input in this pass, on the one unit that has it. Otherwise the
  // input is there when the pass begins.
  bool before = true;
  // The columns of the output that each unit needs. Such a unit takes them from the units that computed
  // neurons, and runs its segment after. Where results are added, its own sums come first, then those of the
  // others by number of the unit.
  std::vector<UnitColumns> output = {{}};

  // Returns the unit that has the whole input, or kNoUnit if several units have parts of it.
  UnitId holder() const { return input.size() == 1 ? input.front().unit : kNoUnit; }
};

}  // namespace tierd
