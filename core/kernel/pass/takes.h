// The activations that a run takes from other units, and those that it gives.
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

// Sets `takes` to the activations that a unit needs before it computes neurons of the site, and returns them:
// the input columns that it lacks, and the choice of the segment before. A site whose neurons are given needs
// nothing.
std::span<const Take> take_input(const Dispatcher& dispatcher, const Topology& topology, const Site& site,
                                 UnitId unit, uint32_t rows, std::vector<Take>& takes);

struct Giving {
  UnitId to;
  UnitId from;
};
// Appends the results that `from` computed of these shares, in the columns that `to` needs.
void take_results(const Dispatcher& dispatcher, const Topology& topology, const Site& site,
                  const Giving& giving, uint32_t rows, std::span<const PassPlan::Share> shares,
                  std::vector<Take>& takes);

// Appends these columns of `width`.
void give(const ActivationPlace& place, const UnitColumns& columns, uint32_t width, std::vector<Give>& gives);

}  // namespace tierd
