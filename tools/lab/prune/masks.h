// The methods that choose weights to be zero and change no other weight.
#pragma once

#include <span>

#include "tools/lab/prune/pattern.h"

namespace tierd {

// Magnitude: the smallest |W| of the matrix become zero, with a threshold for each matrix, as in Wanda's
// baseline (A Simple and Effective Pruning Approach for Large Language Models, section 4); with groups, the
// smallest of each group. `weight` [rows x cols], row by row, changes in place. Among equal ones the first
// are chosen, so that the share of zeros is exact.
void prune_by_magnitude(std::span<float> weight, const Pattern& pattern);

// Wanda (the same paper, section 3): the smallest |W_ij| * ||X_j||_2 of each output row become zero, or of
// each group of its inputs. `norms` [cols] are ||X_j||_2 over the tokens of the calibration.
void prune_by_wanda(std::span<float> weight, std::span<const float> norms, const Pattern& pattern);

}  // namespace tierd
