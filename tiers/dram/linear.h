// Multiplies by a matrix in the host's memory, row group by row group, as neurons of a site are multiplied.
#pragma once

#include <cstdint>

#include "core/agent/agent_entry.h"
#include "tiers/compute/kernels.h"
#include "tiers/compute/team.h"

namespace tierd {

// y [rows x n_out] = x [rows x n_in] times the transpose of the matrix, by the team. [the team's caller]
void linear(const ComputeKernels& kernels, Team& team, const PackedMatrix& matrix, const float* x,
            uint32_t rows, float* y);

}  // namespace tierd
