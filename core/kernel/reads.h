// The reads of one computing unit: which neurons are being fetched, and to which memory, arena slots or a
// staging block; which of those that a plan lists come next, and their messages. What is wanted, and what
// becomes of it, is the business of supply and gathering.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/dispatcher.h"
#include "core/kernel/memory.h"
#include "core/kernel/next_runs.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/staging.h"
#include "core/kernel/wishes.h"

namespace tierd {

class Gathering;

// Neurons of one edition that one message fetches into arena slots or into one staging block.
struct Fetch {
  enum class State : uint8_t { reading, failed, landed, computing };  // failed: to be read again
  SiteId site = kNoSiteId;                                            // whose pass it is for
  EditionId edition = kNoEdition;
  uint32_t step = 0;
  Priority priority = Priority::demand;
  MessageId message;  // which may fetch neurons of other editions as well
  State state = State::reading;
  Gathering* gathering = nullptr;  // of the present pass, which waits for it
  bool unwanted = false;           // given up while the read is in flight
  uint32_t block = kNoBlock;
  uint32_t attempts = 0;
  uint32_t left = 0;      // neurons that the pass wants of it and that were not handed out
  MessageId computed_by;  // once computing
  std::vector<uint32_t> neurons;

  bool into_arena() const { return block == kNoBlock; }
  bool is_for(SiteId a_site, uint32_t a_step) const { return site == a_site && step == a_step; }
};

class Reads {
 public:
  struct Options {
    Memory memory;
    uint16_t flash_agent = 0;
    // Names an extent in an error: file, offset, site.
    std::function<std::string(uint32_t extent)> describe_extent;
  };
  // `sink` hears of the end of each message. Everything referred to outlives this.
  Reads(Dispatcher& dispatcher, const SiteTable& sites, const Residency& residency, Options options,
        CompletionSink& sink);

  // All that were opened and not closed, in that order.
  const std::vector<Fetch*>& all() const { return fetches_; }
  // Its memory is free, or the arena's.
  void close(Fetch& fetch);

  // A pass of this step begins, and ends: what is posted meanwhile belongs to its time.
  void begin_pass(uint32_t step) { present_step_ = step; }
  void end_pass() { present_step_ = 0; }

  // Each starts the next read of what a plan still lists: one message, and the fetches that it carries out,
  // which live as long as the next call. None where it must wait for a staging block or a message slot.
  using Started = std::span<Fetch* const>;
  // For the present pass. Where results are added the plan is sorted by runs, and whole runs are read.
  Started start_demanded(SiteId site, EditionId edition, uint32_t step, Plan& plan);
  // In the plan's order, what is kept apart from what streams by.
  Started start_next(Plan& plan, SiteId site, EditionId edition, uint32_t step, Priority priority);
  // For later passes, of as many editions of the wish as there can be blocks for.
  Started start_next(Wish& wish);
  // The read of a fetch that failed, once more; needs a message slot.
  void post_again(Fetch& fetch);
  // Somebody waits for it now.
  void demand(Fetch& fetch);

  // What a message was about; it is forgotten.
  void ended(MessageId message, std::vector<Fetch*>& fetches);
  // Nobody wants it any more: its message is cancelled once that is so of all that it brings.
  void abandon(Fetch& fetch);
  // Why a message that brings nothing but this fetch has failed.
  Error error(const Fetch& fetch, const Done& done) const;

  // Where a slot of an edition is, in units of kSpanUnit.
  uint32_t arena_place(EditionId edition, uint32_t slot) const { return arena_[edition].at(slot); }
  // each(neuron, place) for those of a fetch, in their order.
  template <class Each>
  void each_place(const Fetch& fetch, Each each) const {
    if (fetch.into_arena()) {
      const std::span<const Residency::Neuron> here = residency_.neurons(fetch.edition);
      const Places arena = arena_[fetch.edition];
      for (const uint32_t neuron : fetch.neurons) each(neuron, arena.at(here[neuron].slot));
      return;
    }
    const Places block =
        places(options_.memory.staging_offset + uint64_t{fetch.block} * staging_.block_bytes(),
               sites_.editions[fetch.edition].slot_bytes);
    for (uint32_t i = 0; i < fetch.neurons.size(); ++i) each(fetch.neurons[i], block.at(i));
  }

 private:
  // Equal slots in the pool, in units of kSpanUnit.
  struct Places {
    uint32_t first;
    uint32_t stride;
    uint32_t at(uint32_t slot) const { return first + slot * stride; }
  };
  static Places places(uint64_t offset, uint32_t slot_bytes) {
    return {static_cast<uint32_t>(offset / kSpanUnit), static_cast<uint32_t>(slot_bytes / kSpanUnit)};
  }
  // How many neurons of an edition one message can fetch into arena slots, and into one block.
  size_t most_units() const { return dispatcher_.max_units(); }
  size_t most_in_block(EditionId edition) const {
    return staging_.block_bytes() / sites_.editions[edition].slot_bytes;
  }
  Fetch& open(SiteId site, EditionId edition, uint32_t step, Priority priority);
  void ask(SiteId site, EditionId edition, Plan& plan);
  Started start_runs(uint32_t step, Priority priority, uint32_t spare);
  // One message for all of these, whose slots or blocks are leased. What is side by side in the file is one
  // read of the device, whichever edition it belongs to.
  void post(std::span<Fetch* const> fetches);
  void list(const Fetch& fetch);

  Dispatcher& dispatcher_;
  const SiteTable& sites_;
  const Residency& residency_;
  Options options_;
  CompletionSink& sink_;
  Staging staging_;
  uint32_t demand_blocks_;     // that look-ahead leaves free
  uint32_t present_step_ = 0;  // of the pass in whose time reads are posted
  std::vector<Places> arena_;  // [editions]

  std::deque<Fetch> all_;
  std::vector<Fetch*> fetches_;                  // in the order of their start
  std::vector<Fetch*> unused_;                   // closed, with their memory
  std::vector<std::vector<Fetch*>> of_message_;  // by message slot
  std::vector<Unit> units_;                      // of one message
  std::vector<NextRuns> asked_;                  // what start_runs is to start
  std::vector<Fetch*> started_;                  // by the last call that started a read
};

}  // namespace tierd
