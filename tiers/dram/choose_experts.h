// What a router's outputs mean.
#pragma once

#include <cstdint>
#include <span>

namespace tierd {

// In place: how much each expert gives becomes its softmax; of all but the `picks` largest ones, of equals
// those of the lowest numbers, 0. `sum_to_one`: those that are left are divided by their sum. A value that is
// no number is larger than any, so that it is seen in the result and not lost. 1 <= picks <= scores.size().
void choose_experts(std::span<float> scores, uint32_t picks, bool sum_to_one);

}  // namespace tierd
