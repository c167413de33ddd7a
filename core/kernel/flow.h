// Which units do the dense work around a site. Made with the model's plan, and the same in every pass.
#pragma once

#include <cstdint>
#include <vector>

namespace tierd {

// A unit is numbered by its place in Topology::units.
using UnitId = uint16_t;

// Columns of a matrix of activations, and the unit that has them, or needs them.
struct UnitColumns {
  UnitId unit = 0;
  uint32_t first = 0;
  uint32_t count = UINT32_MAX;  // those that there are, if it is more
};

// The default lets unit 0 do everything.
struct Flow {
  // Who has which columns of the site's input; together they are all of it, none twice. A unit that computes
  // neurons takes what it does not have.
  std::vector<UnitColumns> input = {{}};
  // Whether the one unit that has the input makes it in this pass, by its segment before. Else it is there
  // when the pass begins.
  bool before = true;
  // Who needs which columns of the output. Such a unit takes them of whoever has computed neurons, and runs
  // its segment after. Where results are added, its own sums come first, then the others' by number of the
  // unit.
  std::vector<UnitColumns> output = {{}};

  // The unit that has all of the input, or kNoUnit where several have parts of it.
  static constexpr UnitId kNoUnit = UINT16_MAX;
  UnitId holder() const { return input.size() == 1 ? input.front().unit : kNoUnit; }
};

}  // namespace tierd
