// Chooses the home DIMM of each neuron, given the hot neurons.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/random.h"
#include "tools/lab/partition/partition_problem.h"

namespace tierd {

using HotNeurons = std::vector<std::vector<uint8_t>>;  // [sites][neurons] 1: hot

// [sites] the neurons of each site by falling frequency, at equal frequency by number.
using FrequencyOrder = std::vector<std::vector<uint32_t>>;
FrequencyOrder order_by_frequency(const PartitionProblem& problem);

// Site by site, assigns the neurons that are not hot to the DIMM with the least load in that site, the
// heaviest first (LPT: longest processing time); then the hot ones, which cost a DIMM only bytes, to the
// emptiest. Empty if whole neurons do not fit the DIMMs in this way: the capacities are too tight.
std::optional<Partition> deal(const PartitionProblem& problem, const FrequencyOrder& order,
                              const HotNeurons& hot);

// Assigns each neuron to a random DIMM that has room.
std::optional<Partition> deal_at_random(const PartitionProblem& problem, const HotNeurons& hot,
                                        Random& random);

}  // namespace tierd
