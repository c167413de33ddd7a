// A gathering brings the neurons of one edition together in one memory, for one use of them.
//
// The problem. A pass computes from neurons of which some are resident, some are on their way because they
// were foreseen or because another site shares the edition, and the rest must be fetched: the cache has to
// make room for them, and a memory below may have to fetch them first. Another memory that fetches from this
// one has the same problem. Transfers end in any order and may fail. No slot may be evicted, and no block
// overwritten, before its neurons were used; and if a pass fails, everything that it leased or pinned must be
// returned.
//
// The class. A gathering decides once, when it begins, what happens to each wanted neuron: pinned, awaited,
// or listed to be fetched. The list is a FetchList, everything that is in the memory or on its way is in
// Arrivals.
//
// The contract, in the order of the calls:
//   1. Supply::gather begins a gathering, for a pass (Scheduler::admit) or for a memory above
//   (Sources::find).
//   2. Gathering::begin pins valid neurons (Arrivals::begin), takes over what is left of the wish for the
//   pass
//      (Wishes::take), joins transfers that are under way (Arrivals::join), asks the cache about the others
//      (Admission::admit), and finds their sources (Sources::find). The list is complete then.
//   3. Supply::fetch starts transfers from the list, once a turn and as far as there is room
//      (Transfers::start_all), gatherings in the order in which they began. Arrivals::started notes each.
//   4. Transfers::on_done ends a transfer: Arrivals::landed, or for good Arrivals::failed.
//   5. A pass hands out what has arrived to a message (Arrivals::hand_out, computed_by); when the message has
//      ended, Arrivals::computed gives blocks back. A memory above starts transfers of what has arrived
//      (Offer::place); when they have ended, Offer::took gives blocks back.
//   6. Supply::close ends the gathering, also one that has failed: called by Scheduler::end_gatherings, by
//      JointRuns, or by Sources when the memory above lets go of the offer. Gathering::end unpins, returns
//      the slots of neurons that no transfer has taken, tells the cache what the memory above has fetched,
//      and gives up transfers without another waiter.
// Steps 3 to 5 repeat, in any order. From 2 to 6 a pinned neuron, and a neuron in a block of an awaited
// transfer, stays where it is; a block may go earlier, in step 5. Once `status` is not ok nothing more needs
// to be fetched, and 6 follows. All calls are on the kernel's thread, and none waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/active_set.h"
#include "core/kernel/supply/admission.h"
#include "core/kernel/supply/arrivals.h"
#include "core/kernel/supply/context.h"
#include "core/kernel/supply/fetch_list.h"
#include "core/kernel/supply/gather_request.h"
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
  // The parts of the memory that all its gatherings share. Everything referred to outlives them.
  struct Shared {
    Transfers& transfers;
    Admission& admission;
    Wishes& wishes;
    Sources& sources;
    Scratch& scratch;
  };
  Gathering(const SupplyContext& context, const Shared& shared)
      : context_(context), shared_(shared), arrivals_(context, shared.transfers) {}
  Gathering(const Gathering&) = delete;

  // Error: plugin_fault.
  Status begin(GatherRequest&& request);
  // `gives_up` false: leaves transfers without another waiter to the next gathering with the same purpose.
  void end(bool gives_up);

  const GatherRequest& request() const { return request_; }
  EditionId edition() const override { return request_.edition; }
  // Whether the neuron is wanted for that pass.
  bool is_for(SiteId site, uint32_t step, EditionId edition, uint32_t neuron) const {
    return request_.edition == edition && request_.purpose.site == site && request_.purpose.step == step &&
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
  bool passes_on() const { return request_.purpose.client != context_.id; }
  bool is_usable(const Transfer& transfer) const;
  Status admit();
  void take_over_wish();
  void withdraw_from_wish();
  void sort_absent();
  void join(const std::vector<uint32_t>& absent);
  uint64_t count(std::span<const uint32_t> neurons, uint64_t& used_bytes);
  void adopt_transfers();
  void note_refused(size_t asked_from);
  const ActiveSet& wanted() const { return request_.set(); }

  const SupplyContext& context_;
  const Shared shared_;
  GatherRequest request_;
  FetchList list_;
  Arrivals arrivals_;
  std::vector<uint32_t> refused_;
  bool took_some_ = false;
};

}  // namespace tierd
