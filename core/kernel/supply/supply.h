// A supply fetches neurons into one memory: those that a pass which computes from it is missing, those that
// memories over it are missing, those that later passes will use, and those that its cache wants from the
// start. It keeps that memory's residency together with the cache. The scheduler has one for each memory,
// and calls them on its thread.
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
#include "core/kernel/supply/fetch_list.h"
#include "core/kernel/supply/fill.h"
#include "core/kernel/supply/gather_request.h"
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
    MemoryId memory = 0;
    const Topology* topology = nullptr;
    std::span<SourceMemory* const> memories;  // [memories] all of them, there before the first call
    Placement* placement = nullptr;
    // Names an extent in an error: file, offset, site.
    std::function<std::string(uint32_t extent)> describe_extent;
    uint32_t read_attempts = 3;  // of a transfer, before its pass fails
  };
  // Each message that ended wakes the waiter at `changed`. Everything referred to outlives the supply.
  Supply(Dispatcher& dispatcher, const SiteTable& sites, Strategies& strategies, Residency& residency,
         const Options& options, Notice& changed);

  // `begin_pass` gives up what was fetched ahead for passes that are over. Messages that are posted after
  // `end_pass` belong to no pass.
  void begin_pass(SiteId site, uint32_t step);
  void end_pass();
  // Whether memory of this site and step still belongs to a transfer.
  bool transferring(SiteId site, uint32_t step) const;

  // ---- Demands. Gatherings fetch in the order in which they were made.

  // Gathers the neurons of a pass that computes from this memory, or those that another memory fetches from
  // here, in an edition that this one holds. Error: plugin_fault; then there is no gathering.
  Result<Gathering*> gather(GatherRequest&& request);
  // Unpins the neurons of a gathering and ends it. Neurons that are fetched for it alone are given up, unless
  // they may stay for the next gathering with the same purpose.
  void close(Gathering& gathering, bool gives_up = true);
  // Starts transfers for gatherings, as far as there is room.
  void fetch() override;

  // ---- Look-ahead.

  // Fetches neurons, ascending, that passes of later sites, or of a later step, will use, in an edition that
  // the memory holds. Neurons that are not kept stay in their blocks until they are computed; in a memory
  // that no unit computes from, until their pass is over, for all memories that fetch them from here. Several
  // editions: neurons of one number are contiguous in the file, and are fetched by one read. Error:
  // plugin_fault.
  struct Wished {
    SiteId site;
    EditionId edition;
    std::span<const uint32_t> neurons;
  };
  Status wish(std::span<const Wished> wanted, uint32_t step, bool bypass);
  // Starts transfers for look-ahead, unless a demand waits for room.
  void pump();
  // Gives up what no later step can use.
  void end_step(uint32_t step);
  // See Fill::run.
  Task<Status> fill(std::vector<WantedNeurons> wanted, std::function<void(uint64_t)> progress,
                    std::function<bool()> stopping) {
    return fill_.run(std::move(wanted), std::move(progress), std::move(stopping));
  }
  // Fetches neurons that should be in the memory and can wait, until `end_pass`.
  SpareTime& spare_time() { return spare_time_; }
  const SpareTime& spare_time() const { return spare_time_; }

  // Gives up everything; `idle` returns whether nothing is under way any more.
  void give_up_all();
  bool idle() const { return transfers_.all().empty() && open_.empty(); }

  Admission& admission() { return admission_; }
  const SupplyContext& context() const { return context_; }

  // ---- For a memory that fetches from this one.

  bool holds(EditionId edition, uint32_t neuron) const override {
    return context_.residency.valid(held_as(edition), neuron);
  }
  Result<Offer*> offer(GatherRequest request) override;
  void close(Offer& offer, bool gives_up) override { close(static_cast<Gathering&>(offer), gives_up); }

  const Residency& residency() const { return context_.residency; }
  // See Memory::held.
  EditionId held_as(EditionId edition) const { return context_.memory().held_as(edition); }
  const MemoryCounters& counters() const { return counters_; }
  // In the topology's order.
  const std::vector<LinkCounters>& links() const { return transfers_.messages().links(); }
  void count_on(const MemoryCounters& from) { add_figures(counters_, from); }
  void count_on(size_t link, const LinkCounters& from) { transfers_.messages().count_on(link, from); }

 private:
  void drop(FetchList& list);
  void drop_what_cannot_be_had(Wish& wish);

  MemoryCounters counters_;
  const SupplyContext context_;
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
  std::vector<uint32_t> present_;
};

}  // namespace tierd
