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
#include "core/kernel/supply/gathering.h"
#include "core/kernel/supply/sources.h"
#include "core/kernel/supply/spare_time.h"
#include "core/kernel/supply/transfers.h"
#include "core/kernel/supply/wishes.h"

namespace tierd {

class Supply : private CompletionSink {
 public:
  struct Options {
    MemoryId memory = 0;  // which one; its cache is asked
    const Topology* topology = nullptr;
    std::deque<Supply>* supplies = nullptr;  // of all memories
    Placement* placement = nullptr;
    // Names an extent in an error: file, offset, site.
    std::function<std::string(uint32_t extent)> describe_extent;
    uint32_t read_attempts = 3;  // a failed transfer is tried so often in all before its pass fails
  };
  // Who waits at `changed` is woken by each message that ended. Everything referred to outlives the supply.
  Supply(Dispatcher& dispatcher, const SiteTable& sites, Strategies& strategies, Residency& residency,
         Options options, Notice& changed);
  ~Supply() override;

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
  Result<Gathering*> gather(const Gathering::Demand& demand);
  Result<Gathering*> gather(const Gathering::Demand& demand, ActiveSet wanted);
  // Unpins what it used and ends it. What is fetched for it alone is given up, unless it may stay for another
  // one that has the same purpose.
  void close(Gathering& gathering, bool gives_up = true);
  // Starts transfers for what somebody waits for, as far as there is room.
  void fetch();

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
                    std::function<bool()> stopping);
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

  const Residency& residency() const { return residency_; }
  // See Memory::held.
  EditionId held_as(EditionId edition) const {
    return options_.topology->memory(options_.memory).held_as(edition);
  }
  const MemoryCounters& counters() const { return counters_; }
  // In the topology's order.
  const std::vector<LinkCounters>& links() const { return links_; }
  void count_on(const MemoryCounters& from) { add_figures(counters_, from); }
  void count_on(size_t link, const LinkCounters& from) { add_figures(links_[link], from); }

 private:
  void count(const Message& message, const Done& done, std::span<Transfer* const> transfers);
  void on_done(const Message& message, const Done& done) override;
  void landed(Transfer& transfer, uint64_t bytes);
  void failed(Transfer& transfer, const Done& done, bool alone);
  void try_again();
  void give_up(Transfer& transfer);
  void give_up(std::span<Transfer* const> transfers);
  void waste(Transfer& transfer);
  uint64_t position(SiteId site, uint32_t step) const { return uint64_t{step} * sites_.size() + site; }
  bool is_over(const Purpose& purpose) const { return position(purpose.site, purpose.step) < over_before_; }
  void drop(EditionId edition, Plan& plan);
  void move_home(const Transfer& transfer);
  void drop_what_cannot_be_had(Wish& wish);
  void tell_passed_on(const Gathering& gathering);
  template <class Begin>
  Result<Gathering*> open(Begin begin);

  Dispatcher& dispatcher_;
  const SiteTable& sites_;
  Strategies& strategies_;
  Residency& residency_;
  Options options_;
  MemoryCounters counters_;
  std::vector<LinkCounters> links_;         // [links into the memory]
  std::vector<uint64_t> links_busy_until_;  // [links into the memory] when the latest message ended
  const bool is_computed_from_;
  uint64_t over_before_ = 0;  // passes before this position are over
  Notice& changed_;
  Admission admission_;
  Sources sources_;
  Transfers transfers_;
  Wishes wishes_;
  SpareTime spare_time_;

  Gathering::Scratch scratch_;
  std::deque<Gathering> gatherings_;
  std::vector<Gathering*> open_;    // in the order in which they were made
  std::vector<Gathering*> unused_;  // ended, with their memory

  // Used by one function each, kept for their memory.
  std::vector<uint32_t> missing_;
  std::vector<uint32_t> present_;  // of those that are wished for

  std::function<void(uint64_t)> fill_progress_;
  Status fill_status_;
};

}  // namespace tierd
