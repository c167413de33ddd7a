// The reads of one computing unit: which neurons are on their way, and to which memory, arena slots or a
// staging block. Their messages; what is wanted, and what becomes of it, is the intake's business.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/dispatcher.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/staging.h"
#include "core/kernel/unit_memory.h"

namespace tierd {

// Neurons of one site that one message brings into arena slots or into one staging block.
struct Fetch {
  enum class State : uint8_t { reading, failed, landed, computing };  // failed: to be read again
  SiteId site = kNoSiteId;
  uint32_t step = 0;
  Priority priority = Priority::demand;
  MessageId message;  // which may bring neurons of other sites as well
  State state = State::reading;
  bool awaited = false;   // by the present pass
  bool unwanted = false;  // given up while the read is in flight
  uint32_t block = kNoBlock;
  uint32_t attempts = 0;
  uint32_t left = 0;      // neurons that the pass wants of it and that were not handed out
  MessageId computed_by;  // once computing
  std::vector<uint32_t> neurons;

  bool into_arena() const { return block == kNoBlock; }
};

class Reads {
 public:
  struct Options {
    UnitMemory memory;
    uint16_t flash_agent = 0;
    // Names an extent in an error: file, offset, site.
    std::function<std::string(uint32_t extent)> describe_extent;
  };
  // `sink` hears of the end of each message. Everything referred to outlives this.
  Reads(Dispatcher& dispatcher, const std::vector<Site>& sites, const Residency& residency, Options options,
        CompletionSink& sink);

  // Of all that was opened and not closed, in that order.
  const std::vector<Fetch*>& all() const { return fetches_; }
  Fetch& open(SiteId site, uint32_t step, Priority priority);
  // Its memory is free, or the arena's.
  void close(Fetch& fetch);

  // One message that brings all of these, whose slots or blocks are leased. What lies side by side in the
  // file is one read of the device, whichever of them it is of. `present_step`: of the pass in whose time it
  // is posted.
  void post(std::span<Fetch* const> fetches, uint32_t present_step);
  // What a message was about; it is forgotten.
  void ended(MessageId message, std::vector<Fetch*>& fetches);
  // Nobody wants it any more: its message is cancelled once that is so of all that it brings.
  void abandon(Fetch& fetch);
  // Why a message that brings nothing but this fetch has failed.
  Error error(const Fetch& fetch, const Done& done) const;

  // How many neurons of a site one message can bring into arena slots, and into one block.
  size_t most_units() const { return dispatcher_.max_units(); }
  size_t most_in_block(SiteId site) const { return staging_.block_bytes() / sites_[site].slot_bytes; }
  Staging& staging() { return staging_; }

  // Where a slot of a canonical site lies, in units of kSpanUnit.
  uint32_t arena_place(SiteId home, uint32_t slot) const { return arena_[home].at(slot); }
  // each(neuron, place) for those of a fetch, in their order.
  template <class Each>
  void each_place(const Fetch& fetch, Each each) const {
    const SiteId home = sites_[fetch.site].domain;
    if (fetch.into_arena()) {
      const std::span<const Residency::Neuron> here = residency_.neurons(home);
      const Places arena = arena_[home];
      for (const uint32_t neuron : fetch.neurons) each(neuron, arena.at(here[neuron].slot));
      return;
    }
    const Places block =
        places(options_.memory.staging_offset + uint64_t{fetch.block} * staging_.block_bytes(),
               sites_[fetch.site].slot_bytes);
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
  void list(const Fetch& fetch);

  Dispatcher& dispatcher_;
  const std::vector<Site>& sites_;
  const Residency& residency_;
  Options options_;
  CompletionSink& sink_;
  Staging staging_;
  std::vector<Places> arena_;  // [sites] of a canonical site

  std::deque<Fetch> all_;
  std::vector<Fetch*> fetches_;                  // in the order of their start
  std::vector<Fetch*> unused_;                   // closed, with their memory
  std::vector<std::vector<Fetch*>> of_message_;  // by message slot
  std::vector<Unit> units_;                      // of one message
};

}  // namespace tierd
