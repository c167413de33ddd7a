// Tells where a memory fetches what it is missing. It fetches a neuron from the nearest memory that holds it
// and has a link to this one. Where no memory does, the neuron is fetched first into the memory that this one
// lies over, and from there into this one. Memories that lie side by side may have links to each other: what
// is fetched over one of those is valid there, so that nobody waits for a neuron in a circle.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/memory.h"
#include "core/kernel/site.h"
#include "core/kernel/supply/fetch_list.h"
#include "core/kernel/supply/purpose.h"
#include "core/message/message.h"

namespace tierd {

class Residency;
class Supply;
struct Transfer;

class Sources {
 public:
  // `supplies` are those of all memories, which need not all be there yet. Everything referred to outlives
  // this.
  Sources(const Topology& topology, MemoryId memory, std::deque<Supply>& supplies, Residency& residency);

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
  Supply& supply(size_t source) const;
  void let_go(FetchList& list, bool gives_up, std::span<Transfer* const> moving);
  void drop_refused(FetchList& list);

  MemoryId memory_;
  std::deque<Supply>& supplies_;
  Residency& residency_;
  std::vector<MemoryId> sources_;  // where the links into the memory come from, in their order
  uint8_t over_ = 0;               // which of them: what nobody holds comes by way of it
  bool store_alone_ = false;
};

}  // namespace tierd
