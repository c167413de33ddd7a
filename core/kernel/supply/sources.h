// The sources of a memory are the memories that it fetches from. A neuron is fetched from the nearest memory
// that holds it and has a link to this one. Where no memory does, it is fetched first into the memory that
// this one lies over, and from there into this one. Memories beside each other may have links both ways: a
// neuron that is fetched over such a link is valid there, so that no two memories wait for each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/agent/message.h"
#include "core/base/result.h"
#include "core/kernel/supply/context.h"
#include "core/kernel/supply/fetch_list.h"
#include "core/kernel/supply/gather_request.h"
#include "core/kernel/supply/offer.h"

namespace tierd {

struct Transfer;

// A memory that others fetch from.
class SourceMemory {
 public:
  virtual ~SourceMemory() = default;
  // Whether the neuron is valid there, in the edition that the memory holds in the place of this one.
  virtual bool holds(EditionId edition, uint32_t neuron) const = 0;
  // Begins to gather neurons for another memory, which wants them in the request's edition. Error:
  // plugin_fault; then there is no offer.
  virtual Result<Offer*> offer(GatherRequest request) = 0;
  // Ends an offer. `gives_up`: neurons that are fetched for it alone are given up, else they stay for the
  // next one with the same purpose.
  virtual void close(Offer& offer, bool gives_up) = 0;
  // Starts transfers of what was demanded, as far as there is room.
  virtual void fetch() = 0;
};

class Sources {
 public:
  // `memories` [memories] need not all be there before the first call. Everything referred to outlives this.
  Sources(const SupplyContext& context, std::span<SourceMemory* const> memories);

  // Sets for each neuron of a list where it is fetched from, and has those memories gather it, with their
  // caches asked unless the list bypasses them; a neuron that one of them refuses leaves the list. Where the
  // list has any order, neurons that are ready are put in front. Error: plugin_fault, and nothing is
  // gathered.
  Status find(FetchList& list);
  // The neurons that no transfer has taken from the list are not wanted any more. `leave` gives up what has
  // been fetched for them below. `hand_over` leaves it to the next gathering with the same purpose, except
  // for blocks that one of the `moving` transfers fetches from.
  void leave(FetchList& list);
  void hand_over(FetchList& list, std::span<Transfer* const> moving);
  // The transfer has landed or is given up: it fetches nothing from below any more.
  void leave(Transfer& transfer);

  // Whether a memory with a link to this one holds the neuron now.
  bool next_to(EditionId edition, uint32_t neuron) const;

  // Starts transfers into the memories below.
  void fetch();
  // Not ok once a neuron of the list cannot be fetched.
  static Status status(const FetchList& list);

 private:
  bool holds(MemoryId memory, EditionId edition, uint32_t neuron) const;
  uint8_t nearest(EditionId edition, uint32_t neuron) const;
  SourceMemory& memory(size_t source) const { return *memories_[sources_[source] - 1u]; }
  void let_go(FetchList& list, bool gives_up, std::span<Transfer* const> moving);
  void drop_refused(FetchList& list);

  const SupplyContext& context_;
  std::span<SourceMemory* const> memories_;
  std::vector<MemoryId> sources_;  // where the links into the memory come from, in their order
  uint8_t over_ = 0;               // the one of them that the memory lies over
  bool store_alone_ = false;
};

}  // namespace tierd
