// The transfers into one memory, from the first message to the end: takes neurons from fetch lists, leases
// blocks for them, tries again what failed, tells the cache what has landed in the arena, and gives up what
// is not wanted any more. Gatherings, and the other waiters, hear of it through TransferWaiter.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/supply/admission.h"
#include "core/kernel/supply/context.h"
#include "core/kernel/supply/fetch_list.h"
#include "core/kernel/supply/sources.h"
#include "core/kernel/supply/staging.h"
#include "core/kernel/supply/stretches.h"
#include "core/kernel/supply/transfer.h"
#include "core/kernel/supply/transfer_messages.h"
#include "core/kernel/supply/wishes.h"

namespace tierd {

class Transfers : private CompletionSink {
 public:
  struct Options {
    // Names an extent in an error: file, offset, site.
    std::function<std::string(uint32_t extent)> describe_extent;
    uint32_t attempts = 3;  // of a transfer, before its pass fails
  };
  // Everything referred to outlives this.
  Transfers(const SupplyContext& context, Admission& admission, Sources& sources, const Options& options);
  ~Transfers() override;

  // All that are not over, in the order of their start.
  const std::vector<Transfer*>& all() const { return open_; }
  // Returns where an arena slot of an edition is, in units of kPlaceUnit.
  uint32_t arena_place(EditionId edition, uint32_t slot) const { return arena_slots_[edition].at(slot); }
  const TransferMessages& messages() const { return messages_; }
  TransferMessages& messages() { return messages_; }

  // A pass begins: gives up blocks that were fetched ahead for passes that are over. Messages that are posted
  // until `end_pass` belong to the time of its step.
  void begin_pass(SiteId site, uint32_t step);
  void end_pass() { messages_.set_step(0); }
  // Gives up the blocks that no later step can use.
  void end_step(uint32_t step);
  // Gives up everything.
  void give_up_all();

  // Starts the next transfers of a list: in any order, of the neurons that are ready, kept ones apart from
  // those that pass through staging; else the list is sorted by stretches, and whole ones are fetched. False:
  // they must wait for a staging block, for a message slot, or for neurons that are not ready.
  bool start(FetchList& list);
  // Starts all of them, as far as possible, and returns whether it was.
  bool start_all(FetchList& list);
  // Starts transfers for a later pass, of as many lists of the wish as there can be blocks for.
  bool start(Wish& wish);
  // Posts those that failed once more, one by one, as far as there are message slots.
  void try_again();

  // A pass waits for the transfer from now on.
  void demand(Transfer& transfer);
  // The waiter needs the transfer no more. Returns whether no waiter is left.
  bool leave(Transfer& transfer, const TransferWaiter& waiter);
  // Gives up transfers that no waiter is left for. Bytes in flight must land before their memory can be used
  // again; in the arena they are kept, since they are paid for.
  void give_up(Transfer& transfer);
  void give_up(std::span<Transfer* const> transfers);
  // The block was used: it is free again.
  void close(BlockTransfer& transfer);

 private:
  template <class Kind>
  struct Pool {
    std::deque<Kind> all;
    std::vector<Kind*> unused;  // closed, with the memory of their lists
    Kind& take();
  };
  // Equal slots, one behind the other, in units of kPlaceUnit.
  struct Slots {
    Slots(uint64_t offset, uint32_t slot_bytes)
        : first(static_cast<uint32_t>(offset / kPlaceUnit)),
          stride(static_cast<uint32_t>(slot_bytes / kPlaceUnit)) {}
    uint32_t at(uint32_t slot) const { return first + slot * stride; }
    uint32_t first;
    uint32_t stride;
  };

  // How many neurons one message can list, and how many of an edition fit into one block.
  size_t most_units() const { return context_.dispatcher.max_units(); }
  size_t most_in_block(EditionId edition) const {
    return staging_.block_bytes() / context_.sites.editions[edition].slot_bytes;
  }
  // Blocks that a transfer of this priority leaves free.
  uint32_t spare(Priority priority) const { return priority == Priority::demand ? 0 : demand_blocks_; }
  uint64_t position(SiteId site, uint32_t step) const {
    return uint64_t{step} * context_.sites.size() + site;
  }
  bool is_over(const Purpose& purpose) const { return position(purpose.site, purpose.step) < over_before_; }

  template <class Kind>
  Kind& open(Pool<Kind>& pool, const FetchList& list, uint8_t source);
  Transfer& open(const FetchList& list, const ToFetch& like, const BlockTransfer* beside = nullptr);
  void ask(FetchList& list) { asked_.push_back({.list = &list, .most = most_in_block(list.edition)}); }
  static bool put_ready_in_front(FetchList& list);
  void start_in_order(FetchList& list);
  void start_by_stretches(FetchList& list);
  void start_stretches();
  void open_taken(const NextStretches& asked);
  void post_started();
  void set_places(Transfer& transfer) const;

  void on_done(const Message& message, const Done& done) override;
  void landed(ArenaTransfer& transfer);
  void landed(BlockTransfer& transfer);
  void failed(Transfer& transfer, const Done& done, bool alone);
  void waste(Transfer& transfer);
  void close(Transfer& transfer);

  const SupplyContext& context_;
  Admission& admission_;
  Sources& sources_;
  const uint32_t most_attempts_;
  TransferMessages messages_;
  std::vector<Slots> arena_slots_;  // [editions]
  Staging staging_;
  const uint32_t demand_blocks_;  // that look-ahead leaves free
  uint32_t failed_ = 0;           // transfers that are to be tried again
  uint64_t over_before_ = 0;      // passes before this position are over

  Pool<ArenaTransfer> arena_;
  Pool<BlockTransfer> blocks_;
  std::vector<Transfer*> open_;       // in the order of their start
  std::vector<NextStretches> asked_;  // of the lists from which stretches are taken
  std::vector<Transfer*> started_;    // by the last call that started some
  std::vector<Transfer*> ended_;      // of the last message that has ended; a member to reuse its memory
};

}  // namespace tierd
