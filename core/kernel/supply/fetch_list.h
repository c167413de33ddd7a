// A fetch list names the neurons of one edition that are to be fetched into a memory, and for which purpose.
// Transfers take neurons from its front.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/agent/message.h"
#include "core/kernel/site.h"
#include "core/kernel/supply/gather_request.h"
#include "core/kernel/supply/offer.h"

namespace tierd {

class TransferWaiter;

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
  TransferWaiter* waiter = nullptr;  // of all transfers of the list; NULL: none waits for them yet
  std::vector<ToFetch> neurons = {};
  size_t next = 0;  // the first neuron that no transfer has taken
  // [sources] The offer of the memory that neurons are fetched from. NULL: no neuron is fetched from there,
  // or all of them are there at any time (the store). Empty where the store is the one source.
  std::vector<Offer*> below = {};

  bool done() const { return next == neurons.size(); }
  // Whether a neuron of the list is where it is fetched from.
  bool ready(size_t i) const {
    if (below.empty()) return true;
    const Offer* const offer = below[neurons[i].source];
    return offer == nullptr || offer->here(neurons[i].neuron);
  }
};

}  // namespace tierd
