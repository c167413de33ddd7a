// Brings neurons into the memory of one computing unit: reads into arena slots or staging blocks, look-ahead,
// retries, as its cache admits them; and keeps that memory's residency. The scheduler has one for each unit,
// and calls them on its thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/active_set.h"
#include "core/kernel/admission.h"
#include "core/kernel/counters.h"
#include "core/kernel/dispatcher.h"
#include "core/kernel/next_runs.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/reads.h"
#include "core/kernel/residency.h"
#include "core/kernel/run_order.h"
#include "core/kernel/site.h"
#include "core/kernel/strategies.h"
#include "core/kernel/task.h"
#include "core/kernel/wishes.h"

namespace tierd {

class Intake : private CompletionSink {
 public:
  struct Options {
    uint16_t unit = 0;  // its number: which of the caches is asked
    Reads::Options reads;
    uint32_t read_attempts = 3;  // a failed read is tried so often in all before its pass fails
  };
  // Who waits at `changed` is woken by each read that ended. Everything referred to outlives the intake.
  Intake(Dispatcher& dispatcher, const std::vector<Site>& sites, Strategies& strategies, Residency& residency,
         Options options, SchedulerCounters& counters, Notice& changed);
  ~Intake() override;

  // ---- The present pass, from `begin` to `end`.

  // Neurons that a pass computes; they live until `end`.
  struct Demand {
    const ActiveSet& wanted;
    bool bypass = false;              // the cache is not asked, what is missing streams by
    const ActiveSet* used = nullptr;  // others of `wanted` are only measured: they stream by. NULL: none
  };
  // Tells apart which of the neurons are here, coming, or must be asked for. Error: plugin_fault.
  Status begin(SiteId site, uint32_t step, const Demand& demand);
  // Starts reads for what is missing, as far as there is room.
  void fetch();
  // Appends what can be computed and was not handed out before: neurons and where they lie. Takes no more
  // than a message can list. What it appends lies where it is until `computed`. Where results are added: in
  // the order of their numbers, all of a run together, since this is the order in which they are summed.
  void hand_out(std::vector<Unit>& units);
  // What was handed out since the last call is computed by this message; and: that message is over.
  void computed_by(MessageId message);
  void computed(MessageId message);
  // Everything was handed out.
  bool handed_out() const;
  // Not ok once a read that the pass cannot do without has failed.
  const Status& status() const { return status_; }
  // Unpins what was used and gives back what was read; after an error also what is still to come.
  void end();
  // Whether memory of this site and step still belongs to a read.
  bool reading(SiteId site, uint32_t step) const;

  // ---- What later passes will want.

  // Neurons, ascending, that passes of later sites, or of a later step, will use. Several sites: neurons of
  // one number lie side by side in the file, and come with one read. Error: plugin_fault.
  struct Wished {
    SiteId site;
    std::span<const uint32_t> neurons;
  };
  Status wish(std::span<const Wished> wanted, uint32_t step, bool bypass);
  // Starts reads for them, unless the present pass still waits for room.
  void pump();
  // Gives up what no later step can use.
  void end_step(uint32_t step);
  // Brings in these before the first step, or between two, as far as there is room; `progress` hears of bytes
  // that landed, `stopping` says when to give up.
  Task<Status> fill(std::vector<WantedAtStart> wanted, std::function<void(uint64_t)> progress,
                    std::function<bool()> stopping);
  // Gives up everything; `idle` once no read is in flight.
  void give_up_all();
  bool idle() const { return reads_.all().empty(); }

  // Of the unit's cache: see Admission.
  Status expire(SiteId site) { return admission_.expire(site); }
  void shrink(SiteId site, std::span<const uint32_t> neurons) { admission_.shrink(site, neurons); }
  Status take_fault() { return admission_.take_fault(); }

  const Residency& residency() const { return residency_; }

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;

  void on_done(const Message& message, const Done& done) override;
  void take_read(Fetch& fetch, const Done& done, bool alone);
  void read_again();

  // Each starts the next read, whose fetches `started_` holds then. False when it must wait for a staging
  // block or a message slot.
  bool start_demanded();
  bool start_next(Plan& plan, SiteId site, uint32_t step, Priority priority);
  bool start_next(Wish& wish);
  bool start_runs(uint32_t step, Priority priority, uint32_t spare);
  void ask(SiteId site, Plan& plan);
  void post(Fetch& fetch);
  void hand_out_runs(std::vector<Unit>& units);
  void note_places(const Fetch& fetch);
  void give_up(Fetch& fetch);
  void give_up_passed(SiteId site, uint32_t step);
  void retire(Fetch& fetch, bool used);
  void await(Fetch& fetch);
  void set_source(uint32_t neuron, Fetch* fetch) {
    source_[neuron] = fetch;
    sourced_.push_back(neuron);
  }
  SiteId domain(SiteId site) const { return sites_[site].domain; }

  Dispatcher& dispatcher_;
  const std::vector<Site>& sites_;
  Residency& residency_;
  Options options_;
  SchedulerCounters& counters_;
  Notice& changed_;
  Admission admission_;
  Reads reads_;
  uint32_t demand_blocks_;
  Wishes wishes_;

  // The present pass.
  bool in_pass_ = false;
  SiteId site_ = kNoSiteId;
  uint32_t step_ = 0;
  std::vector<uint32_t> resident_;  // valid when the pass began; emptied when they are handed out
  std::vector<uint32_t> pinned_;    // those, and what landed in the arena since; unpinned when the pass ends
  Plan plan_;                       // missing neurons
  std::vector<Fetch*> awaited_;     // reads that bring some of the others
  // By neuron, with room for the largest site: a pass writes, and clears, only what it is about.
  std::vector<Fetch*> source_;     // which of them a neuron is computed from
  std::vector<uint32_t> sourced_;  // neurons that have one
  const ActiveSet* wanted_ = nullptr;
  uint32_t next_ = 0;             // where results are added: the first of `wanted_` that was not handed out
  std::vector<uint32_t> places_;  // of a wanted one: where it lies, kNowhere before it is here
  Status status_;

  std::vector<NextRuns> asked_;  // what start_runs is to start
  std::vector<Fetch*> started_;  // by the last call that started a read

  // Of one function each, kept for their memory.
  std::vector<Fetch*> coming_;  // by neuron; nothing between two calls
  std::vector<Fetch*> ours_;
  std::vector<uint8_t> planned_;  // likewise
  std::vector<uint32_t> missing_;
  std::vector<uint32_t> present_;  // of those that are wished for

  std::function<void(uint64_t)> fill_progress_;
  Status fill_status_;
};

}  // namespace tierd
