// A gathering holds the neurons of one edition that somebody wants in one memory: a pass that computes from
// there, or another memory that lies over this one and fetches from it what it is missing. It knows which of
// the neurons are resident, which are being fetched, and which can be handed on.
#pragma once

#include <algorithm>
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
#include "core/kernel/supply/demand.h"
#include "core/kernel/supply/fetch_list.h"
#include "core/kernel/supply/offer.h"
#include "core/kernel/supply/sources.h"
#include "core/kernel/supply/transfers.h"
#include "core/kernel/supply/wishes.h"

namespace tierd {

class Gathering : public Offer {
 public:
  // Used while a gathering begins, by number of a neuron, with room for the largest site; nothing between.
  struct Scratch {
    std::vector<Transfer*> coming;
    std::vector<uint8_t> listed;
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
    // Nobody computes from the memory: what was fetched ahead into its blocks is for all that gather there.
    bool shares_blocks = false;
  };
  explicit Gathering(const Context& context);
  Gathering(const Gathering&) = delete;

  // Tells apart which of the neurons are resident, which are being fetched, and which must be asked for.
  // Appends to `surplus` what was fetched ahead for this purpose and is not wanted. Error: plugin_fault.
  Status begin(const Demand& demand, std::vector<Transfer*>& surplus);
  // The same for neurons that nobody else keeps a list of; `demand.wanted` is not looked at.
  Status begin(Demand demand, ActiveSet wanted, std::vector<Transfer*>& surplus);
  // Starts transfers for what is missing, as far as there is room here and it has come to the memory below.
  // Returns whether everything was asked for.
  bool fetch();
  bool asked_all() const { return list_.done(); }
  // Whether nothing but room keeps it from asking for the next neurons.
  bool waits_for_room() const;
  // Asks for nothing more: what was admitted and not asked for gives its slots back.
  void stop() override;
  // Unpins what was used. Appends to `surplus` transfers that nobody waits for any more.
  void end(std::vector<Transfer*>& surplus);

  // `landed` and `failed` are told of transfers that this gathering waits for; `failed` when a transfer is
  // not tried again.
  bool waits_for(const Transfer& transfer) const;
  void landed(Transfer& transfer);
  void failed(Transfer& transfer, const Error& error);
  // Not ok once something that cannot be done without has failed, here or where it comes from.
  Status status() const override;

  const Demand& demand() const { return demand_; }
  EditionId edition() const override { return demand_.edition; }
  // Whether it wants the neuron for that pass.
  bool is_for(SiteId site, uint32_t step, EditionId edition, uint32_t neuron) const {
    return demand_.edition == edition && demand_.purpose.site == site && demand_.purpose.step == step &&
           wanted().contains(neuron);
  }
  // Whether the neurons go to another memory from here.
  bool passes_on() const { return demand_.purpose.client != context_.id; }

  // ---- For a pass.

  // Appends what can be computed and was not handed out before: neurons and their places, no more than a
  // message can list. They keep their places until `computed`. Where results are added, they follow in the
  // order of their numbers, all of a run together, since this is the order in which they are summed. Returns
  // the move that some of them are waiting for: who computes them names it (Message::about). `units` is
  // empty.
  MessageId hand_out(std::vector<Unit>& units);
  // The same where results are placed, for what is not here yet, which the first function leaves to this one.
  MessageId hand_out_moving(std::vector<Unit>& units);
  bool handed_out() const;  // everything was
  // `computed_by` tells which message computes what was handed out since the last call, `computed` that this
  // message is over.
  void computed_by(MessageId message);
  void computed(MessageId message);
  // Whether a message computes neurons of a transfer that is not over.
  bool is_followed(const Transfer& transfer) const { return follower(transfer) != followers_.end(); }

  // ---- For another memory.

  uint32_t place(uint32_t neuron) const override { return places_[neuron]; }
  const std::vector<uint32_t>& refused() const override { return refused_; }
  void took(std::span<const uint32_t> neurons) override;
  bool took_some() const { return took_some_; }
  void release_all_but(std::span<const uint32_t> neurons) override;

 private:
  bool is_for_us(const Transfer& transfer) const;
  void take_over_wish();
  void withdraw_from_wish();
  void sort_missing();
  void adopt_transfers(std::vector<Transfer*>& surplus);
  void note_residents();
  void note_refused(size_t asked_from);
  void note_places(const Transfer& transfer);
  // What computes neurons of a transfer that is not over; none until that message is posted.
  struct Follower {
    Transfer* transfer;
    MessageId message;
  };
  using Followers = std::vector<Follower>;

  MessageId hand_out_stretches(std::vector<Unit>& units);
  bool can_follow(const Transfer& transfer) const;
  void follow(Transfer& transfer);
  Followers::const_iterator follower(const Transfer& transfer) const {
    return std::ranges::find(followers_, &transfer, &Follower::transfer);
  }
  void wait_for(Transfer& transfer);
  void leave(Transfer& transfer);
  void set_source(uint32_t neuron, Transfer* transfer) {
    source_[neuron] = transfer;
    sourced_.push_back(neuron);
  }
  bool notes_places() const { return passes_on() || context_.sites[demand_.purpose.site].added; }
  const ActiveSet& wanted() const { return *demand_.wanted; }

  Context context_;
  Demand demand_;
  ActiveSet kept_;  // what is wanted, where nobody else keeps it
  // Valid at the beginning, or landed in the arena since, and not handed out yet.
  std::vector<uint32_t> resident_;
  std::vector<uint32_t> pinned_;    // those, and those that were handed out since
  FetchList list_;                  // missing neurons
  std::vector<Transfer*> awaited_;  // they fetch some of the others
  // By neuron, with room for the largest site: a gathering writes, and clears, only what it is about.
  std::vector<Transfer*> source_;  // which of them it is handed on from
  std::vector<uint32_t> sourced_;  // neurons that have one
  Followers followers_;
  uint32_t next_ = 0;             // where results are added: the first of `wanted` that was not handed out
  std::vector<uint32_t> places_;  // the place of a wanted one, kNowhere until it can be handed on
  Status status_;
  std::vector<uint32_t> refused_;
  bool took_some_ = false;

  // Used by one function each, kept for their memory.
  std::vector<Transfer*> ours_;
  std::vector<ToFetch> withdrawn_;
  std::vector<uint32_t> missing_;
};

}  // namespace tierd
