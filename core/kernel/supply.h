// Fetches neurons into the memory of one computing unit: what the present pass is missing, what later passes
// will want, what its cache wants from the start; retries what failed. Keeps that memory's residency with its
// cache. The scheduler has one for each unit, and calls them on its thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <ranges>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/admission.h"
#include "core/kernel/counters.h"
#include "core/kernel/dispatcher.h"
#include "core/kernel/gathering.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/reads.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/strategies.h"
#include "core/kernel/task.h"
#include "core/kernel/wishes.h"

namespace tierd {

class Supply : private CompletionSink {
 public:
  struct Options {
    MemoryId memory = 0;  // which one; its cache is asked
    const Topology* topology = nullptr;
    // Names an extent in an error: file, offset, site.
    std::function<std::string(uint32_t extent)> describe_extent;
    uint32_t read_attempts = 3;  // a failed read is tried so often in all before its pass fails
  };
  // Who waits at `changed` is woken by each read that ended. Everything referred to outlives the supply.
  Supply(Dispatcher& dispatcher, const SiteTable& sites, Strategies& strategies, Residency& residency,
         Options options, SchedulerCounters& counters, Notice& changed);
  ~Supply() override;

  // ---- The present pass, from `begin_pass` to `end_pass`. It computes from one or more editions of its
  // site, which fetch in the order in which they were given, and where results are added are summed in that
  // order.

  void begin_pass(SiteId site, uint32_t step);
  // Error: plugin_fault.
  Status gather(EditionId edition, const Gathering::Demand& demand);
  // Starts reads for what is missing, as far as there is room.
  void fetch();
  // Appends to `units` what can be computed of one edition, and returns that edition; kNoEdition: nothing
  // can. See Gathering::hand_out.
  EditionId hand_out(std::vector<Unit>& units);
  // What was handed out since the last call is computed by this message; and: that message is over.
  void computed_by(MessageId message);
  void computed(MessageId message);
  // Everything was handed out.
  bool handed_out() const;
  // Not ok once a read that the pass cannot do without has failed.
  Status status() const;
  // Unpins what was used and gives back what was read; after an error also what is still to come.
  void end_pass();
  // Whether memory of this site and step still belongs to a read.
  bool reading(SiteId site, uint32_t step) const;

  // ---- What later passes will want.

  // Neurons, ascending, that passes of later sites, or of a later step, will use. Several editions: neurons
  // of one number lie side by side in the file, and are fetched by one read. Error: plugin_fault.
  struct Wished {
    SiteId site;
    EditionId edition;
    std::span<const uint32_t> neurons;
  };
  Status wish(std::span<const Wished> wanted, uint32_t step, bool bypass);
  // Starts reads for them, unless the present pass still waits for room.
  void pump();
  // Gives up what no later step can use.
  void end_step(uint32_t step);
  // Fetches these before the first step, or between two, as far as there is room; `progress` hears of bytes
  // that landed, `stopping` says when to give up.
  Task<Status> fill(std::vector<WantedAtStart> wanted, std::function<void(uint64_t)> progress,
                    std::function<bool()> stopping);
  // Gives up everything; `idle` once no read is in flight.
  void give_up_all();
  bool idle() const { return reads_.all().empty(); }

  // See Admission.
  Status expire(EditionId edition) { return admission_.expire(edition); }
  void shrink(EditionId edition, std::span<const uint32_t> neurons) { admission_.shrink(edition, neurons); }
  Status take_fault() { return admission_.take_fault(); }

  const Residency& residency() const { return residency_; }

 private:
  void on_done(const Message& message, const Done& done) override;
  void take_read(Fetch& fetch, const Done& done, bool alone);
  void read_again();
  void give_up(Fetch& fetch);
  void give_up(std::span<Fetch* const> fetches);
  void give_up_passed(SiteId site, uint32_t step);
  void waste(Fetch& fetch);
  auto gatherings() { return std::views::take(gatherings_, in_use_); }
  auto gatherings() const { return std::views::take(gatherings_, in_use_); }

  Dispatcher& dispatcher_;
  const SiteTable& sites_;
  Residency& residency_;
  Options options_;
  SchedulerCounters& counters_;
  Notice& changed_;
  Admission admission_;
  Reads reads_;
  Wishes wishes_;

  // The present pass.
  SiteId site_ = kNoSiteId;
  uint32_t step_ = 0;
  std::deque<Gathering> gatherings_;  // the first `in_use_` are the pass's, the others wait with their memory
  size_t in_use_ = 0;

  // Used by one function each, kept for their memory.
  std::vector<Fetch*> surplus_;
  std::vector<uint32_t> missing_;
  std::vector<uint32_t> present_;  // of those that are wished for

  std::function<void(uint64_t)> fill_progress_;
  Status fill_status_;
};

}  // namespace tierd
