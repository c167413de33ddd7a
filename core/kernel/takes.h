// What a run takes of the activations of other units.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/kernel/dispatcher.h"
#include "core/kernel/pass_plan.h"
#include "core/kernel/site.h"
#include "core/message/message.h"

namespace tierd {

// Sets `takes` to what a unit needs before it computes neurons of the site: what `agent` has left as the
// site's input, and what it has chosen. Nothing of a site whose neurons are given.
void take_input(const Dispatcher& dispatcher, const Site& site, uint16_t agent, uint32_t rows,
                std::vector<Take>& takes);

// Appends what `agent` has computed of these shares.
void take_results(const Dispatcher& dispatcher, const Site& site, uint16_t agent, uint32_t rows,
                  std::span<const PassPlan::Share> shares, std::vector<Take>& takes);

}  // namespace tierd
