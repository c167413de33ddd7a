// The transfers into one memory: which neurons are being fetched, from where, and to which arena slots or
// staging block; which of those that a plan lists come next, and their messages. What is wanted, and what
// becomes of it, is the business of supply and gathering.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/memory.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/supply/fetch_list.h"
#include "core/kernel/supply/offer.h"
#include "core/kernel/supply/staging.h"
#include "core/kernel/supply/stretches.h"
#include "core/kernel/supply/wishes.h"

namespace tierd {

class Gathering;

// Neurons of one edition that one message fetches into arena slots or into one staging block.
struct Transfer {
  enum class State : uint8_t { moving, failed, landed, computing };  // failed: to be tried again
  Purpose purpose = {};
  EditionId edition = kNoEdition;
  Priority priority = Priority::demand;
  uint8_t source = 0;  // an index of the memory's Sources
  Offer* below =
      nullptr;  // of the memory that they are fetched from, until they have landed; NULL: the store
  MessageId message = {};  // which may fetch neurons of other editions as well
  State state = State::moving;
  uint32_t waiting = 0;            // gatherings that wait for it
  Gathering* gathering = nullptr;  // of a block: the one that does
  bool unwanted = false;           // given up while its message is in flight
  uint32_t block = kNoBlock;
  uint32_t first = 0;  // of the block's slots: where its first neuron is
  uint32_t attempts = 0;
  uint32_t left = 0;  // of a block: neurons that somebody wants and that were not handed out
  // Its block was fetched ahead into a memory that nobody computes from: whoever gathers for its pass may
  // take from it, until that pass is over.
  bool shared = false;
  uint32_t taken = 0;          // of those: neurons that were, as often as they were
  bool meanwhile = false;      // nobody waits for it, see SpareTime
  bool moves_home = false;     // whoever computes from here is their home once they are here
  MessageId computed_by = {};  // once computing
  std::vector<uint32_t> neurons = {};

  bool into_arena() const { return block == kNoBlock; }
};

class Transfers {
 public:
  // Where neurons come from, and who carries them: see Link.
  struct From {
    MemoryId memory = kStore;
    uint16_t agent = 0;
    uint8_t lane = 0;
  };
  struct Options {
    MemoryId id = 0;
    Memory memory;
    std::vector<From> from;  // [sources]
    // Names an extent in an error: file, offset, site.
    std::function<std::string(uint32_t extent)> describe_extent;
  };
  // `sink` hears of the end of each message. Everything referred to outlives this.
  Transfers(Dispatcher& dispatcher, const SiteTable& sites, const Residency& residency, Options options,
            CompletionSink& sink);

  const std::vector<From>& sources() const { return options_.from; }
  // The agent that carries a transfer.
  uint16_t carrier(const Transfer& transfer) const { return options_.from[transfer.source].agent; }
  // Whether it comes from another memory, not from the store.
  bool moves(const Transfer& transfer) const { return options_.from[transfer.source].memory != kStore; }

  // All that were opened and not closed, in that order.
  const std::vector<Transfer*>& all() const { return open_; }
  // Its memory is free, or the arena's.
  void close(Transfer& transfer);

  // A pass of this step begins, and ends: what is posted meanwhile belongs to its time.
  void begin_pass(uint32_t step) { present_step_ = step; }
  void end_pass() { present_step_ = 0; }

  // Each starts the next transfers of what a plan still lists, which live as long as the next call. None
  // where they must wait for a staging block, for a message slot, or for neurons that are not yet where they
  // come from.
  using Started = std::span<Transfer* const>;
  // In any order: the neurons that are ready, kept ones apart from those that pass through staging. Else the
  // list is sorted by stretches, and whole ones are fetched.
  Started start(FetchList& list);
  // For later passes, of as many editions of the wish as there can be blocks for.
  Started start(Wish& wish);
  // One that failed, once more; needs a message slot.
  void post_again(Transfer& transfer);
  // Somebody waits for it now.
  void demand(Transfer& transfer);

  // What a message was about; it is forgotten.
  void ended(MessageId message, std::vector<Transfer*>& transfers);
  // Nobody wants it any more: its message is cancelled once that is so of all that it fetches.
  void abandon(Transfer& transfer);
  // Returns the bytes of weights, without padding, of the first `neurons` that a message with these transfers
  // has fetched, as they crossed the link.
  uint64_t payload_bytes(std::span<Transfer* const> transfers, uint64_t neurons) const;
  // Why a message that fetches nothing but this has failed.
  Error error(const Transfer& transfer, const Done& done) const;

  // Where a slot of an edition is, in units of kPlaceUnit.
  uint32_t arena_place(EditionId edition, uint32_t slot) const { return arena_[edition].at(slot); }
  // each(neuron, place) for those of a transfer, in their order.
  template <class Each>
  void each_place(const Transfer& transfer, Each each) const {
    if (transfer.into_arena()) {
      const std::span<const Residency::Neuron> here = residency_.neurons(transfer.edition);
      const Places arena = arena_[transfer.edition];
      for (const uint32_t neuron : transfer.neurons) each(neuron, arena.at(here[neuron].slot));
      return;
    }
    const Places block =
        places(options_.memory.staging_offset + uint64_t{transfer.block} * staging_.block_bytes(),
               sites_.editions[transfer.edition].slot_bytes);
    for (uint32_t i = 0; i < transfer.neurons.size(); ++i)
      each(transfer.neurons[i], block.at(transfer.first + i));
  }

 private:
  // Equal slots in the pool, in units of kPlaceUnit.
  struct Places {
    uint32_t first;
    uint32_t stride;
    uint32_t at(uint32_t slot) const { return first + slot * stride; }
  };
  static Places places(uint64_t offset, uint32_t slot_bytes) {
    return {static_cast<uint32_t>(offset / kPlaceUnit), static_cast<uint32_t>(slot_bytes / kPlaceUnit)};
  }
  // How many neurons of an edition one message can fetch into arena slots, and into one block.
  size_t most_units() const { return dispatcher_.max_units(); }
  size_t most_in_block(EditionId edition) const {
    return staging_.block_bytes() / sites_.editions[edition].slot_bytes;
  }
  bool from_store_alone() const { return options_.from.size() == 1 && options_.from[0].memory == kStore; }
  // Blocks that a transfer of this priority leaves free.
  uint32_t spare(Priority priority) const { return priority == Priority::demand ? 0 : demand_blocks_; }
  // For each source a message.
  bool can_post() const { return dispatcher_.can_post(static_cast<uint32_t>(options_.from.size())); }
  Transfer& open(const FetchList& list, uint8_t source);
  void ask(FetchList& list) { asked_.push_back({.list = &list, .most = most_in_block(list.edition)}); }
  Started start_in_order(FetchList& list);
  static bool put_ready_in_front(FetchList& list);
  Started start_stretches();
  void open_taken(const NextStretches& asked);
  void post_started();
  // One message for all of these, whose slots or blocks are leased, and which have one source. What is side
  // by side in the file is one read of the device, whichever edition it belongs to.
  void post(std::span<Transfer* const> transfers);
  void list(const Transfer& transfer);
  void list_lengths(std::span<Transfer* const> transfers);
  // What a transfer's neurons are where they come from.
  EditionId edition_at_source(const Transfer& transfer) const;
  // Returns the bytes of weights of a neuron as it crosses the link: bitmaps are expanded behind the link,
  // and neurons of fewer bits are made before it.
  uint32_t crossing_bytes(const Transfer& transfer, uint32_t neuron) const {
    return std::min(sites_.editions[edition_at_source(transfer)].bytes[neuron],
                    sites_.editions[transfer.edition].bytes[neuron]);
  }

  Dispatcher& dispatcher_;
  const SiteTable& sites_;
  const Residency& residency_;
  Options options_;
  CompletionSink& sink_;
  Staging staging_;
  uint32_t demand_blocks_;     // that look-ahead leaves free
  uint32_t present_step_ = 0;  // of the pass in whose time messages are posted
  std::vector<Places> arena_;  // [editions]

  std::deque<Transfer> all_;
  std::vector<Transfer*> open_;                     // in the order of their start
  std::vector<Transfer*> unused_;                   // closed, with their memory
  std::vector<std::vector<Transfer*>> of_message_;  // by message slot
  std::vector<Unit> units_;                         // of one message
  std::vector<uint32_t> neurons_, lengths_;         // likewise
  std::vector<NextStretches> asked_;                // what start_stretches is to start
  std::vector<Transfer*> started_;                  // by the last call that started some
};

}  // namespace tierd
