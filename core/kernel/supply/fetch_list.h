// A fetch list names the neurons of one edition that are to be fetched into a memory, and for which purpose.
// Transfers take neurons from its front.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernel/site.h"
#include "core/kernel/supply/purpose.h"
#include "core/message/message.h"

namespace tierd {

class Gathering;

struct ToFetch {
  uint32_t neuron;
  bool keep;           // its arena slot is leased; else it passes through a staging block
  uint8_t source = 0;  // the memory that it is fetched from: an index of the memory's Sources
};

struct FetchList {
  Purpose purpose = {};
  EditionId edition = kNoEdition;
  Priority priority = Priority::demand;
  bool bypass = false;  // caches of the memories below are not asked
  // Neurons are fetched in the order in which they are ready; else in whole stretches, in the order of these.
  bool any_order = false;
  std::vector<ToFetch> neurons = {};
  size_t next = 0;  // the first neuron that no transfer has taken
  // [sources] The gathering of this list's neurons in the memory that they are fetched from. NULL: no neuron
  // is fetched from there, or all of them are there at any time (the store). Empty where the store is the one
  // source.
  std::vector<Gathering*> below = {};

  bool done() const { return next == neurons.size(); }
};

}  // namespace tierd
