// Tells where a memory fetches what it is missing. It fetches a neuron from the nearest memory that holds it
// and has a link to this one. Where no memory does, the neuron is fetched first into the memory that this one
// lies over, and from there into this one. Memories that lie side by side may have links to each other: what
// is fetched over one of those is valid there, so that nobody waits for a neuron in a circle.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/agent/message.h"
#include "core/base/result.h"
#include "core/kernel/memory.h"
#include "core/kernel/site.h"
#include "core/kernel/supply/plan.h"
#include "core/kernel/supply/purpose.h"

namespace tierd {

class Residency;
class Supply;
struct Transfer;

class Sources {
 public:
  // `supplies` are those of all memories, which need not all be there yet. Everything referred to outlives
  // this.
  Sources(const Topology& topology, MemoryId memory, std::deque<Supply>& supplies, Residency& residency);

  // Sets for each neuron that a plan still lists where it comes from, and has those memories gather it, with
  // their caches asked unless it is to bypass them; what one of them refuses leaves the plan. Where the order
  // is free, what is there already is put in front. Error: plugin_fault, and nothing is gathered.
  struct Request {
    Purpose purpose;
    EditionId edition = kNoEdition;
    Priority priority = Priority::demand;
    bool bypass = false;
    bool in_any_order = false;
  };
  Status find(const Request& request, Plan& plan);
  // Nobody wants the rest of the plan any more. `leave` gives up what has been fetched for it below,
  // `hand_over` keeps that for the next gathering with the same purpose, but for what is on its way from
  // there by one of the transfers in `moving`.
  void leave(Plan& plan);
  void hand_over(Plan& plan, std::span<Transfer* const> moving);
  // A transfer is over: it needs nothing below any more.
  void leave(Transfer& transfer);

  // Whether a memory with a link to this one holds the neuron now.
  bool next_to(EditionId edition, uint32_t neuron) const;

  // Starts what has to be fetched below first.
  void fetch();
  // Not ok once something that the plan lists cannot be had.
  static Status status(const Plan& plan);

 private:
  bool holds(MemoryId memory, EditionId edition, uint32_t neuron) const;
  uint8_t nearest(EditionId edition, uint32_t neuron) const;
  Supply& supply(size_t source) const;
  void let_go(Plan& plan, bool gives_up, std::span<Transfer* const> moving);
  void drop_refused(EditionId edition, Plan& plan);

  MemoryId memory_;
  std::deque<Supply>& supplies_;
  Residency& residency_;
  std::vector<MemoryId> sources_;  // where the links into the memory come from, in their order
  uint8_t over_ = 0;               // which of them: what nobody holds comes by way of it
  bool store_alone_ = false;
};

}  // namespace tierd
