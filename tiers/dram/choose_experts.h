// The router's choice of experts.
#pragma once

#include <cstdint>
#include <span>

#include "core/agent/program.h"

namespace tierd {

// In place: the router's products become the weights of the experts, and all but those of the picked ones
// become 0; among equals the lower number is picked. `correction`: of each expert, or NULL. A NaN counts as
// larger than any number, so that the result shows it. 1 <= picks <= scores.size(), of the groups that are
// used.
void choose_experts(std::span<float> scores, const ExpertChoice& routing, const float* correction);

}  // namespace tierd
