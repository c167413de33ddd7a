// Fetches neurons while no unit computes from the memories that they are fetched from: neurons that should be
// in the memory, and that no pass waits for. They are fetched one message at a time, so that the pass behind
// waits for one of them at most.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/placement.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/supply/admission.h"
#include "core/kernel/supply/context.h"
#include "core/kernel/supply/sources.h"
#include "core/kernel/supply/transfers.h"

namespace tierd {

// A message that no pass waited for, and that has ended.
struct SpareMove {
  uint64_t start_ns = 0;
  uint64_t done_ns = 0;
  uint64_t neurons = 0;
  uint64_t bytes = 0;
};

class SpareTime : private TransferWaiter {
 public:
  // Everything referred to outlives this.
  SpareTime(const SupplyContext& context, Placement& placement, Admission& admission, Sources& sources,
            Transfers& transfers)
      : context_(context),
        placement_(placement),
        admission_(admission),
        sources_(sources),
        transfers_(transfers) {}

  // Appends neurons to those that will be fetched. Neurons that are in the memory by then, or on their way,
  // or in no memory next to this one, are left out. `moves_home`: the unit is the home of those that landed.
  void ask(WantedNeurons wanted, bool moves_home) { asked_.push_back({std::move(wanted), moves_home, 0}); }
  // Starts the next message, unless one is under way. The cache is asked for room for its neurons, and none
  // is evicted for more than that. Error: plugin_fault.
  Status start();
  // Forgets the neurons that no message was started for.
  void end();

  // Returns the messages that ended since the last call of `take_moves`.
  const std::vector<SpareMove>& moves() const { return moves_; }
  std::vector<SpareMove> take_moves() { return std::exchange(moves_, {}); }

 private:
  struct Asked {
    WantedNeurons wanted;
    bool moves_home;
    size_t next;  // of its neurons
  };
  void take_some(Asked& asked);
  Status start_some(const Asked& asked);
  void move_home(const Transfer& transfer);

  uint32_t started(Transfer& transfer) override;
  void message_ended(const Done& done) override;
  void landed(const Transfer& transfer, uint32_t number) override;
  Retry retry(uint32_t /*number*/) const override { return Retry::needless; }
  void failed(uint32_t number, const Error& error) override;

  const SupplyContext& context_;
  Placement& placement_;
  Admission& admission_;
  Sources& sources_;
  Transfers& transfers_;
  std::deque<Asked> asked_;
  uint32_t under_way_ = 0;      // transfers of the last start that are not over
  bool moves_home_ = false;     // they do
  std::vector<uint32_t> some_;  // of one message
  std::vector<SpareMove> moves_;
};

}  // namespace tierd
