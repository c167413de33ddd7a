// What one pass computes from one edition in the memory of one computing unit: which of its neurons are
// resident, which are being fetched, and which can be handed to the agent that computes them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/active_set.h"
#include "core/kernel/admission.h"
#include "core/kernel/counters.h"
#include "core/kernel/dispatcher.h"
#include "core/kernel/reads.h"
#include "core/kernel/residency.h"
#include "core/kernel/run_order.h"
#include "core/kernel/site.h"
#include "core/kernel/wishes.h"

namespace tierd {

class Gathering {
 public:
  // The memory of the unit, which all its gatherings share. Everything referred to outlives them.
  struct Memory {
    const Dispatcher& dispatcher;
    const SiteTable& sites;
    Residency& residency;
    Reads& reads;
    Admission& admission;
    Wishes& wishes;
    SchedulerCounters& counters;
  };
  explicit Gathering(const Memory& memory);
  Gathering(const Gathering&) = delete;

  // Neurons that the pass computes; they live until `end`.
  struct Demand {
    const ActiveSet& wanted;
    bool bypass = false;              // the cache is not asked, what is missing streams by
    const ActiveSet* used = nullptr;  // others of `wanted` are only measured: they stream by. NULL: none
  };
  // Tells apart which of the neurons are resident, which are being fetched, and which must be asked for.
  // Appends to `surplus` what look-ahead has fetched for this pass in vain. Error: plugin_fault.
  Status begin(SiteId site, EditionId edition, uint32_t step, const Demand& demand,
               std::vector<Fetch*>& surplus);
  // Starts reads for what is missing, as far as there is room. Whether everything was asked for.
  bool fetch();
  bool asked_all() const { return plan_.done(); }
  // Appends what can be computed and was not handed out before: neurons and their places, no more than a
  // message can list. They keep their places until `computed`. Where results are added, they follow in the
  // order of their numbers, all of a run together, since this is the order in which they are summed.
  void hand_out(std::vector<Unit>& units);
  bool handed_out() const;  // everything was
  // What was handed out since the last call is computed by this message; and: that message is over.
  void computed_by(MessageId message);
  void computed(MessageId message);
  // Unpins what was used. Appends to `surplus` reads that the pass does not need any more.
  void end(std::vector<Fetch*>& surplus);

  // A read that this gathering waits for has landed; it has failed for good.
  void landed(const Fetch& fetch);
  void failed(Fetch& fetch, const Error& error);
  // Not ok once a read that the pass cannot do without has failed.
  const Status& status() const { return status_; }

  SiteId site() const { return site_; }
  EditionId edition() const { return edition_; }

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;

  void take_over_wish();
  void sort_missing(const Demand& demand);
  void note_places(const Fetch& fetch);
  void hand_out_runs(std::vector<Unit>& units);
  void wait_for(Fetch& fetch);
  void set_source(uint32_t neuron, Fetch* fetch) {
    source_[neuron] = fetch;
    sourced_.push_back(neuron);
  }

  Memory memory_;
  SiteId site_ = kNoSiteId;
  EditionId edition_ = kNoEdition;
  uint32_t step_ = 0;
  const ActiveSet* wanted_ = nullptr;
  std::vector<uint32_t> resident_;  // valid when the pass began; emptied when they are handed out
  std::vector<uint32_t> pinned_;    // those, and what landed in the arena since; unpinned when the pass ends
  Plan plan_;                       // missing neurons
  std::vector<Fetch*> awaited_;     // reads that fetch some of the others
  // By neuron, with room for the largest site: a pass writes, and clears, only what it is about.
  std::vector<Fetch*> source_;     // which of them a neuron is computed from
  std::vector<uint32_t> sourced_;  // neurons that have one
  uint32_t next_ = 0;              // where results are added: the first of `wanted_` that was not handed out
  std::vector<uint32_t> places_;   // the place of a wanted one, kNowhere before it is here
  Status status_;

  // Used by one function each, kept for their memory.
  std::vector<Fetch*> coming_;  // by neuron; nothing between two calls
  std::vector<Fetch*> ours_;
  std::vector<uint8_t> planned_;  // likewise
  std::vector<uint32_t> missing_;
};

}  // namespace tierd
