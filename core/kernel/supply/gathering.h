// A gathering brings the neurons of one edition together in one memory, for one use of them.
//
// The problem: a pass wants to compute from neurons of which some are resident, some were asked for ahead of
// time, some are on their way for another site that shares the edition, and the rest must be fetched, for
// which the cache has to make room and a memory below may have to fetch first. Another memory that fetches
// from this one wants the same. Transfers end in any order, at any time, and may fail; no slot may be
// evicted, and no block overwritten, before the neurons in it were used; and if the pass fails in between,
// everything that was leased, pinned or asked for must be returned.
//
// A gathering is the list of what one use still needs. It decides at the beginning, in one go, what happens
// to each neuron; what comes after that follows the transfers:
//
//   1. Supply::gather makes it, for a pass (Scheduler::admit) or for the memory above (Sources::find).
//   2. `begin` pins what is valid (Arrivals::begin), takes over the wish for this pass that was not worked
//      off (Wishes::take), joins transfers that are under way (Arrivals::join), asks the cache about what
//      nothing fetches yet (Admission::admit), and finds for it where it is fetched from (Sources::find).
//      What is left to fetch is in `list`.
//   3. Supply::fetch starts transfers from the list as far as there is room (Transfers::start_all), in the
//      order in which gatherings were made, once a turn until the list is done. Each started transfer is
//      awaited (Arrivals::started).
//   4. A transfer ends (Transfers::on_done): its neurons are noted as arrived (Arrivals::landed), or the
//      gathering fails (Arrivals::failed).
//   5. A pass hands out what has arrived to a message (Arrivals::hand_out, computed_by), and when this
//      message has ended, blocks are given back (Arrivals::computed). The memory above starts transfers of
//      what has arrived (Offer::place), and when those have ended, blocks are given back (Offer::took).
//      Steps 3 to 5 repeat in any order.
//   6. Supply::close ends it, whether everything was used or not: the pass calls it
//      (Scheduler::end_gatherings, JointRuns), or Sources when the last list or transfer of the memory above
//      lets go of the offer. `end` unpins, gives back the slots of neurons that no transfer has taken, tells
//      the cache what the memory above has taken, and gives up transfers that have no other waiter.
//
// The contract: between `begin` and `end` a neuron that is pinned, or in a block of an awaited transfer,
// stays where it is. After a failure of `begin` or of a transfer, `status` says why, nothing more of the list
// needs to be fetched, and `end` is called all the same. One thread; no function waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/active_set.h"
#include "core/kernel/counters.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/supply/admission.h"
#include "core/kernel/supply/arrivals.h"
#include "core/kernel/supply/demand.h"
#include "core/kernel/supply/fetch_list.h"
#include "core/kernel/supply/offer.h"
#include "core/kernel/supply/sources.h"
#include "core/kernel/supply/transfers.h"
#include "core/kernel/supply/wishes.h"

namespace tierd {

class Gathering : public Offer {
 public:
  // Used by `begin` alone, and kept for its memory. By number of a neuron, with room for the largest site;
  // zero between two calls: `coming`, the transfer that fetches it; `listed`, whether the list has it.
  struct Scratch {
    std::vector<Transfer*> coming;
    std::vector<uint8_t> listed;
    std::vector<Transfer*> usable;  // under way or in a block, and of use for this gathering
    std::vector<Transfer*> surplus;
    std::vector<ToFetch> withdrawn;
    std::vector<uint32_t> missing;
    explicit Scratch(const SiteTable& sites) : coming(sites.most_neurons()), listed(sites.most_neurons()) {}
  };
  // The memory, which all its gatherings share. Everything referred to outlives them.
  struct Context {
    MemoryId id;
    const Dispatcher& dispatcher;
    const SiteTable& sites;
    Residency& residency;
    Transfers& transfers;
    Admission& admission;
    Wishes& wishes;
    Sources& sources;
    MemoryCounters& counters;
    Scratch& scratch;
    bool is_computed_from;  // else blocks that were fetched ahead are shared by all gatherings of their pass
  };
  explicit Gathering(const Context& context);
  Gathering(const Gathering&) = delete;

  // Error: plugin_fault.
  Status begin(const Demand& demand);
  // The same with a set that the gathering keeps; `demand` has none.
  Status begin(Demand demand, ActiveSet wanted);
  // `gives_up`: false leaves transfers without another waiter to the next gathering with the same purpose.
  void end(bool gives_up);

  const Demand& demand() const { return demand_; }
  EditionId edition() const override { return demand_.edition; }
  // Whether the neuron is wanted for that pass.
  bool is_for(SiteId site, uint32_t step, EditionId edition, uint32_t neuron) const {
    return demand_.edition == edition && demand_.purpose.site == site && demand_.purpose.step == step &&
           wanted().contains(neuron);
  }
  // The missing neurons, from which transfers are started.
  FetchList& list() { return list_; }
  bool asked_all() const { return list_.done(); }
  Arrivals& arrivals() { return arrivals_; }
  bool handed_out() const { return list_.done() && arrivals_.handed_out(); }

  Status status() const override;
  uint32_t place(uint32_t neuron) const override { return arrivals_.place(neuron); }
  const std::vector<uint32_t>& refused() const override { return refused_; }
  void took(std::span<const uint32_t> neurons) override;
  void stop() override;
  void release_all_but(std::span<const uint32_t> neurons) override { arrivals_.release_all_but(neurons); }

 private:
  bool passes_on() const { return demand_.purpose.client != context_.id; }
  bool is_usable(const Transfer& transfer) const;
  Status begin();
  void take_over_wish();
  void withdraw_from_wish();
  void sort_absent();
  void join(const std::vector<uint32_t>& absent);
  void count(std::span<const uint32_t> neurons, uint64_t& counted);
  void adopt_transfers();
  void note_refused(size_t asked_from);
  bool used(uint32_t neuron) const { return demand_.used == nullptr || demand_.used->contains(neuron); }
  const ActiveSet& wanted() const { return *demand_.wanted; }

  Context context_;
  Demand demand_;
  ActiveSet kept_;  // the wanted set, where the caller does not keep it
  FetchList list_;
  Arrivals arrivals_;
  std::vector<uint32_t> refused_;
  bool took_some_ = false;
};

}  // namespace tierd
