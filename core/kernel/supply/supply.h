// Fetches neurons into one memory: what passes that compute from it are missing, what memories over it are
// missing, what later passes will want, what its cache wants from the start; tries again what failed. Keeps
// that memory's residency with its cache. The scheduler has one for each memory, and calls them on its
// thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/counters.h"
#include "core/kernel/memory.h"
#include "core/kernel/placement.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/post/task.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/strategies.h"
#include "core/kernel/supply/admission.h"
#include "core/kernel/supply/demand.h"
#include "core/kernel/supply/fetch_list.h"
#include "core/kernel/supply/fill.h"
#include "core/kernel/supply/gathering.h"
#include "core/kernel/supply/offer.h"
#include "core/kernel/supply/sources.h"
#include "core/kernel/supply/spare_time.h"
#include "core/kernel/supply/transfers.h"
#include "core/kernel/supply/wishes.h"

namespace tierd {

class Supply : public SourceMemory {
 public:
  struct Options {
    MemoryId memory = 0;  // which one; its cache is asked
    const Topology* topology = nullptr;
    std::span<SourceMemory* const> memories;  // [memories] all of them, there before the first call
    Placement* placement = nullptr;
    // Names an extent in an error: file, offset, site.
    std::function<std::string(uint32_t extent)> describe_extent;
    uint32_t read_attempts = 3;  // a failed transfer is tried so often in all before its pass fails
  };
  // Who waits at `changed` is woken by each message that ended. Everything referred to outlives the supply.
  Supply(Dispatcher& dispatcher, const SiteTable& sites, Strategies& strategies, Residency& residency,
         const Options& options, Notice& changed);

  // `begin_pass` gives up what was fetched ahead for passes that are over. What is posted after `end_pass`
  // belongs to no pass.
  void begin_pass(SiteId site, uint32_t step);
  void end_pass();
  // Whether memory of this site and step still belongs to a transfer.
  bool transferring(SiteId site, uint32_t step) const;

  // ---- What somebody waits for, or will. Gatherings fetch in the order in which they were made.

  // The neurons of a pass that computes from this memory, or what another memory gets from here, in an
  // edition that this one holds; the set lives as long as the gathering, or is kept by it. Error:
  // plugin_fault; then there is no gathering.
  Result<Gathering*> gather(const Demand& demand);
  Result<Gathering*> gather(const Demand& demand, ActiveSet wanted);
  // Unpins what it used and ends it. What is fetched for it alone is given up, unless it may stay for another
  // one that has the same purpose.
  void close(Gathering& gathering, bool gives_up = true);
  // Starts transfers for what somebody waits for, as far as there is room.
  void fetch() override;

  // ---- What later passes will want.

  // Neurons, ascending, that passes of later sites, or of a later step, will use, in an edition that the
  // memory holds. What is not kept stays in its blocks until it is computed; where nobody computes from the
  // memory, until its pass is over, for whoever fetches it from here. Several editions: neurons of one number
  // lie side by side in the file, and are fetched by one read. Error: plugin_fault.
  struct Wished {
    SiteId site;
    EditionId edition;
    std::span<const uint32_t> neurons;
  };
  Status wish(std::span<const Wished> wanted, uint32_t step, bool bypass);
  // Starts transfers for them, unless somebody still waits for room.
  void pump();
  // Gives up what no later step can use.
  void end_step(uint32_t step);
  // Fetches these before the first step, or between two, as far as there is room; `progress` hears of bytes
  // that landed, `stopping` says when to give up.
  Task<Status> fill(std::vector<WantedNeurons> wanted, std::function<void(uint64_t)> progress,
                    std::function<bool()> stopping) {
    return fill_.run(std::move(wanted), std::move(progress), std::move(stopping));
  }

  // ---- What should be here, and can wait.

  // Until `end_pass`, while nobody computes from the memories next to this one, fetches from those what it
  // has room for, in this order. `moves_home`: the unit that computes from here is the home of what has come.
  void fetch_meanwhile(WantedNeurons wanted, bool moves_home) {
    spare_time_.ask(std::move(wanted), moves_home);
  }
  // Returns the messages of `fetch_meanwhile` that ended since the last call of `take_spare_moves`.
  const std::vector<SpareMove>& spare_moves() const { return spare_time_.moves(); }
  std::vector<SpareMove> take_spare_moves() { return spare_time_.take_moves(); }

  // Gives up everything; `idle` once nothing is under way.
  void give_up_all();
  bool idle() const { return transfers_.all().empty() && open_.empty(); }

  // See Admission.
  Status expire(EditionId edition) { return admission_.expire(edition); }
  void shrink(EditionId edition, std::span<const uint32_t> neurons) { admission_.shrink(edition, neurons); }
  Status take_fault() { return admission_.take_fault(); }

  // ---- For a memory that fetches from this one.

  bool holds(EditionId edition, uint32_t neuron) const override {
    return residency_.valid(held_as(edition), neuron);
  }
  Result<Offer*> offer(Demand demand, ActiveSet wanted) override;
  void close(Offer& offer, bool gives_up) override { close(static_cast<Gathering&>(offer), gives_up); }

  const Residency& residency() const { return residency_; }
  // See Memory::held.
  EditionId held_as(EditionId edition) const { return topology_.memory(memory_).held_as(edition); }
  const MemoryCounters& counters() const { return counters_; }
  // In the topology's order.
  const std::vector<LinkCounters>& links() const { return transfers_.messages().links(); }
  void count_on(const MemoryCounters& from) { counters_ += from; }
  void count_on(size_t link, const LinkCounters& from) { transfers_.messages().count_on(link, from); }

 private:
  Gathering& open();
  Result<Gathering*> begun(Gathering& gathering, const Status& status);
  void drop(FetchList& list);
  void drop_what_cannot_be_had(Wish& wish);

  Dispatcher& dispatcher_;
  const SiteTable& sites_;
  Residency& residency_;
  const MemoryId memory_;
  const Topology& topology_;
  const bool is_computed_from_;
  MemoryCounters counters_;
  Admission admission_;
  Sources sources_;
  Transfers transfers_;
  Wishes wishes_;
  SpareTime spare_time_;
  Fill fill_;

  Gathering::Scratch scratch_;
  std::deque<Gathering> gatherings_;
  std::vector<Gathering*> open_;    // in the order in which they were made
  std::vector<Gathering*> unused_;  // ended, with their memory

  // Used by `wish` alone, and kept for their memory.
  std::vector<uint32_t> missing_;
  std::vector<uint32_t> present_;  // of the neurons that are wished for
};

}  // namespace tierd
