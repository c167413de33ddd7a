// SparseGPT: what the pruned weights of a row did, the weights after them take over.
#pragma once

#include <span>

#include "tools/lab/prune/inverse_hessian.h"
#include "tools/lab/prune/matrix_team.h"
#include "tools/lab/prune/pattern.h"

namespace tierd {

// Prunes `weight` [rows x inverse.width], row by row, in place: Algorithm 1 of "SparseGPT", with its block
// size and its lazy updates. Columns go from left to right. Before each block of 128, the smallest w^2 /
// U_jj^2 of the block over all rows are chosen (U_jj^2 is the diagonal of the inverse that is left of H); in
// groups, those of each group of each row, as its first column's turn comes. A weight that becomes zero is
// made up for by the row's later ones: w -= w_j / U_jj * U_j. Weights of dead channels are zero first, and so
// chosen first; where there are more of them than the share, there are more zeros. The published program
// takes one weight more of a block than its share, a matter of its index; here it is the share, rounded down.
void prune_by_sparsegpt(std::span<float> weight, const InverseHessian& inverse, const Pattern& pattern,
                        MatrixTeam& team);

}  // namespace tierd
