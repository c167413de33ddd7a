// What a run takes of the activations of other units, and what it gives of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/agent/message.h"
#include "core/kernel/memory.h"
#include "core/kernel/pass/pass_plan.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/site.h"

namespace tierd {

// Sets `takes` to what a unit needs before it computes neurons of the site, and returns them: the columns of
// the input that it does not have, and what the segment before has chosen. A site whose neurons are given
// needs nothing.
std::span<const Take> take_input(const Dispatcher& dispatcher, const Topology& topology, const Site& site,
                                 UnitId unit, uint32_t rows, std::vector<Take>& takes);

struct Giving {
  UnitId to;
  UnitId from;
};
// Appends what the one has computed of these shares in the columns that the other needs.
void take_results(const Dispatcher& dispatcher, const Topology& topology, const Site& site,
                  const Giving& giving, uint32_t rows, std::span<const PassPlan::Share> shares,
                  std::vector<Take>& takes);

// Appends these columns of `width`.
void give(const ActivationPlace& place, const UnitColumns& columns, uint32_t width, std::vector<Give>& gives);

}  // namespace tierd
