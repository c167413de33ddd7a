// Admitted neurons of one edition that wait for their transfer into a memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tierd {

class Gathering;

struct Planned {
  uint32_t neuron;
  bool keep;           // its arena slot is leased; else it streams by through a staging block
  uint8_t source = 0;  // where it comes from: an index of the memory's Sources
};

struct Plan {
  std::vector<Planned> neurons;
  size_t next = 0;
  // [sources] What gathers the neurons in the memory that they come from; NULL: nothing of this plan comes
  // from there, or everything is there at any time (the store). Empty where the store is the one source.
  std::vector<Gathering*> below = {};

  bool done() const { return next == neurons.size(); }
};

}  // namespace tierd
