// A transfer is some neurons of one edition that one message fetches into a memory: into slots of its arena,
// or into a block of its staging.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/agent/message.h"
#include "core/base/result.h"
#include "core/kernel/site.h"
#include "core/kernel/supply/gather_request.h"
#include "core/kernel/supply/offer.h"

namespace tierd {

class TransferWaiter;

// The part that both kinds have in common.
struct Transfer {
  // moving: its message is under way. abandoned: the same, and its neurons are not wanted any more. failed:
  // it will be tried again.
  enum class State : uint8_t { moving, abandoned, failed, landed };
  // `number`: how the waiter knows the transfer.
  struct Waiting {
    TransferWaiter* waiter;
    uint32_t number;
  };

  Purpose purpose = {};
  EditionId edition = kNoEdition;
  Priority priority = Priority::demand;
  uint8_t source = 0;      // an index of the memory's Sources
  Offer* below = nullptr;  // that the neurons are fetched from, until they have landed; NULL: the store
  MessageId message = {};  // the last one for it, which may fetch neurons of other editions as well
  State state = State::moving;
  uint32_t attempts = 0;
  std::vector<Waiting> waiting = {};
  std::vector<uint32_t> neurons = {};
  std::vector<uint32_t> places = {};  // [neurons] where each one goes, in units of kPlaceUnit

  bool into_arena() const { return into_arena_; }
  bool is_awaited_by(const TransferWaiter& waiter) const {
    return std::ranges::find(waiting, &waiter, &Waiting::waiter) != waiting.end();
  }
  bool under_way() const { return state == State::moving || state == State::abandoned; }

 protected:
  explicit Transfer(bool into_arena) : into_arena_(into_arena) {}

 private:
  bool into_arena_;
};

// A transfer into slots of the arena. It is over once its neurons have landed: residency has them then.
struct ArenaTransfer : Transfer {
  ArenaTransfer() : Transfer(true) {}
};

// A block for all gatherings of a pass, until the pass is over.
struct SharedBlock {
  uint32_t taken = 0;  // neurons that memories above have fetched from the block, counted each time
};

// A transfer into a staging block. It is over once the block is given back.
struct BlockTransfer : Transfer {
  uint32_t block = 0;
  uint32_t first = 0;                      // the place of its first neuron among the block's slots
  std::optional<SharedBlock> shared = {};  // none: the block is for the one gathering that waits for it
  BlockTransfer() : Transfer(false) {}
};

// Returns the block transfer that a transfer is, or NULL.
inline BlockTransfer* in_block(Transfer& transfer) {
  return transfer.into_arena() ? nullptr : static_cast<BlockTransfer*>(&transfer);
}
inline const BlockTransfer* in_block(const Transfer& transfer) {
  return transfer.into_arena() ? nullptr : static_cast<const BlockTransfer*>(&transfer);
}

// Waits for transfers, and hears what becomes of them.
class TransferWaiter {
 public:
  // Whether a waiter needs another attempt at a transfer that has failed. The greatest answer of all waiters
  // counts.
  enum class Retry : uint8_t { needless, as_it_was, as_demand, impossible };

  virtual ~TransferWaiter() = default;
  // A transfer of the waiter's list was posted. Returns the number by which the waiter will know it.
  virtual uint32_t started(Transfer& transfer) = 0;
  // A message with one of its transfers has ended, well or not.
  virtual void message_ended(const Done& /*done*/) {}
  // The neurons have landed. A transfer into the arena is over then, and waited for no more.
  virtual void landed(const Transfer& transfer, uint32_t number) = 0;
  virtual Retry retry(uint32_t number) const = 0;
  // The transfer has failed for good, and is over.
  virtual void failed(uint32_t number, const Error& error) = 0;
};

}  // namespace tierd
