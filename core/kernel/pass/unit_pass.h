// A unit pass holds what one unit computes in the present pass, from one or more editions of the site. It
// hands them out in the order in which they were added, which is that of the sums where results are added.
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
  // Whoever had the gathering made ends it, after this.
  void add(Gathering& gathering) { gatherings_.push_back(&gathering); }
  const std::vector<Gathering*>& gatherings() const { return gatherings_; }

  // Neurons of an edition, which can be computed once a move is over, or at once. kNoEdition: there are none.
  struct HandedOut {
    EditionId edition = kNoEdition;
    MessageId move = {};
  };
  // Appends to `units`, which is empty, what can be computed of one edition. `in_order`: results are added.
  // See Gathering::hand_out.
  HandedOut hand_out(std::vector<Unit>& units, bool in_order);
  // See Gathering.
  void computed_by(MessageId message);
  void computed(MessageId message);
  // Everything was handed out.
  bool handed_out() const;
  // Not ok once a transfer that the pass cannot do without has failed.
  Status status() const;

  bool merges = false;            // results go to it, and it runs the segment after
  bool begun = false;             // something was posted
  bool cleared = false;           // its results begin at zero
  bool has_input = false;         // it has taken the input of others
  bool finished = false;          // the segment after was posted
  uint32_t running = 0;           // messages under way
  uint32_t computing = 0;         // those with neurons
  uint64_t computed_neurons = 0;  // by messages that are over
  BusyTime busy;                  // with messages under way; where several units compute
  // What it takes of others, once that is known.
  std::vector<Take> input;
  std::vector<Take> results;

 private:
  std::vector<Gathering*> gatherings_;
};

}  // namespace tierd
