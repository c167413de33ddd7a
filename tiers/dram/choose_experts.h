// The router's choice of experts.
#pragma once

#include <cstdint>
#include <span>

namespace tierd {

// In place: the router's outputs become softmax weights, and all but the `picks` largest become 0; among
// equals the lower number is picked. `sum_to_one`: the picked weights are divided by their sum. A NaN counts
// as larger than any number, so that the result shows it. 1 <= picks <= scores.size().
void choose_experts(std::span<float> scores, uint32_t picks, bool sum_to_one);

}  // namespace tierd
