// Tells where a memory fetches what it is missing. It fetches a neuron from the nearest memory that holds it
// and has a link to this one. Where no memory does, the neuron is fetched first into the memory that this one
// lies over, and from there into this one. Memories that lie side by side may have links to each other: what
// is fetched over one of those is valid there, so that nobody waits for a neuron in a circle.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/memory.h"
#include "core/kernel/site.h"
#include "core/kernel/supply/demand.h"
#include "core/kernel/supply/fetch_list.h"
#include "core/kernel/supply/offer.h"
#include "core/message/message.h"

namespace tierd {

class Residency;
struct Transfer;

// A memory that others fetch from.
class SourceMemory {
 public:
  virtual ~SourceMemory() = default;
  // Whether the neuron is valid there, in the edition that the memory holds in the place of this one.
  virtual bool holds(EditionId edition, uint32_t neuron) const = 0;
  // Begins to gather neurons for another memory; `demand` has the edition that the other one wants, and no
  // set. Error: plugin_fault; then there is no offer.
  virtual Result<Offer*> offer(Demand demand, ActiveSet wanted) = 0;
  // Ends an offer. `gives_up`: neurons that are fetched for it alone are given up, else they stay for the
  // next one with the same purpose.
  virtual void close(Offer& offer, bool gives_up) = 0;
  // Starts transfers of what was demanded, as far as there is room.
  virtual void fetch() = 0;
};

class Sources {
 public:
  // `memories` [memories] need not all be there before the first call. Everything referred to outlives this.
  Sources(const Topology& topology, MemoryId memory, std::span<SourceMemory* const> memories,
          Residency& residency);

  // Sets for each neuron of a list where it is fetched from, and has those memories gather it, with their
  // caches asked unless the list bypasses them; a neuron that one of them refuses leaves the list. Where the
  // list has any order, neurons that are ready are put in front. Error: plugin_fault, and nothing is
  // gathered.
  Status find(FetchList& list);
  // Nobody wants the rest of the list any more. `leave` gives up what has been fetched for it below,
  // `hand_over` keeps that for the next gathering with the same purpose, but for what is on its way from
  // there by one of the transfers in `moving`.
  void leave(FetchList& list);
  void hand_over(FetchList& list, std::span<Transfer* const> moving);
  // A transfer is over: it needs nothing below any more.
  void leave(Transfer& transfer);

  // Whether a memory with a link to this one holds the neuron now.
  bool next_to(EditionId edition, uint32_t neuron) const;

  // Starts what has to be fetched below first.
  void fetch();
  // Not ok once a neuron of the list cannot be fetched.
  static Status status(const FetchList& list);

 private:
  bool holds(MemoryId memory, EditionId edition, uint32_t neuron) const;
  uint8_t nearest(EditionId edition, uint32_t neuron) const;
  SourceMemory& memory(size_t source) const { return *memories_[sources_[source] - 1u]; }
  void let_go(FetchList& list, bool gives_up, std::span<Transfer* const> moving);
  void drop_refused(FetchList& list);

  MemoryId memory_;
  std::span<SourceMemory* const> memories_;
  Residency& residency_;
  std::vector<MemoryId> sources_;  // where the links into the memory come from, in their order
  uint8_t over_ = 0;               // which of them: what nobody holds comes by way of it
  bool store_alone_ = false;
};

}  // namespace tierd
