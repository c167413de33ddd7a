// SparseGPT: the remaining weights of a row compensate for the pruned ones before them.
#pragma once

#include <span>

#include "tools/lab/prune/inverse_hessian.h"
#include "tools/lab/prune/matrix_team.h"
#include "tools/lab/prune/pattern.h"

namespace tierd {

// Prunes `weight` [rows x inverse.width], row by row, in place: Algorithm 1 of "SparseGPT", with its block
// size and its lazy updates. Columns go from left to right. Before each block of 128, the smallest w^2 /
// U_jj^2 of the block over all rows are chosen (U_jj^2 is the diagonal of the inverse of the remaining H);
// with groups, the smallest of each group of each row, when its first column is reached. The row's later
// weights compensate for a weight that becomes zero: w -= w_j / U_jj * U_j. Weights of dead channels are set
// to zero first and so chosen first; if they exceed the share, there are more zeros. The published program
// prunes one weight more of a block than its share, because of its index; here it is the share, rounded down.
void prune_by_sparsegpt(std::span<float> weight, const InverseHessian& inverse, const Pattern& pattern,
                        MatrixTeam& team);

}  // namespace tierd
