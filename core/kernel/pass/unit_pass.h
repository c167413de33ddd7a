// The work of one unit in the present pass, from one or more editions of the site. Neurons are handed out in
// the order in which gatherings were added; where results are added, this is the order of the sums.
#pragma once

#include <cstdint>
#include <vector>

#include "core/agent/message.h"
#include "core/base/result.h"
#include "core/kernel/post/busy_time.h"
#include "core/kernel/site.h"
#include "core/kernel/supply/gathering.h"

namespace tierd {

class UnitPass {
 public:
  // Adds a gathering; its owner closes it after this unit pass has ended.
  void add(Gathering& gathering) { gatherings_.push_back(&gathering); }
  const std::vector<Gathering*>& gatherings() const { return gatherings_; }

  // Neurons of an edition that can be computed once `move` is over, or at once. kNoEdition: there are none.
  struct HandedOut {
    EditionId edition = kNoEdition;
    MessageId move = {};
  };
  // Appends to `units`, which is empty, the neurons of one edition that can be computed. `in_order`: results
  // are added. See Gathering::hand_out.
  HandedOut hand_out(std::vector<Unit>& units, bool in_order);
  // See Gathering.
  void computed_by(MessageId message);
  void computed(MessageId message);
  // Returns whether all neurons were handed out.
  bool handed_out() const;
  // Not ok once a required transfer has failed.
  Status status() const;

  bool merges = false;            // receives results, and runs the segment after
  bool begun = false;             // something was posted
  bool cleared = false;           // its results were cleared
  bool has_input = false;         // it has taken the input from other units
  bool finished = false;          // the segment after was posted
  uint32_t running = 0;           // messages under way
  uint32_t computing = 0;         // of these, messages with neurons
  uint64_t computed_neurons = 0;  // by finished messages
  BusyTime busy;                  // time with messages under way, if several units compute
  // Activations taken from other units, once known.
  std::vector<Take> input;
  std::vector<Take> results;

 private:
  std::vector<Gathering*> gatherings_;
};

}  // namespace tierd
