// Which DIMM each neuron gets for its home, once it is known which neurons are hot.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/random.h"
#include "tools/lab/partition/partition_problem.h"

namespace tierd {

using HotNeurons = std::vector<std::vector<uint8_t>>;  // [sites][neurons] 1: hot

// [sites] the neurons of each by falling frequency, those of one frequency by number.
using FrequencyOrder = std::vector<std::vector<uint32_t>>;
FrequencyOrder order_by_frequency(const PartitionProblem& problem);

// Site by site, the neurons that are not hot go to the DIMM with the least to do in that site, the heaviest
// first (LPT: longest processing time); then the hot ones, which cost a DIMM only bytes, to the emptiest.
// Nothing where whole neurons do not fill the DIMMs that way: the capacities are too tight.
std::optional<Partition> deal(const PartitionProblem& problem, const FrequencyOrder& order,
                              const HotNeurons& hot);

// Any DIMM that has room.
std::optional<Partition> deal_at_random(const PartitionProblem& problem, const HotNeurons& hot,
                                        Random& random);

}  // namespace tierd
