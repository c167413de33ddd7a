#include "tiers/dram/linear.h"

#include <algorithm>
#include <vector>

#include "core/model/layout/row_group.h"
#include "tiers/dram/work_cost.h"

namespace tierd {

void linear(const ComputeKernels& kernels, Team& team, const PackedMatrix& matrix, const float* x,
            uint32_t rows, float* y) {
  const auto [encoding, n_out, n_in, groups] = matrix;
  if (n_out == 0 || n_in == 0 || rows == 0) {
    std::fill_n(y, uint64_t{rows} * n_out, 0.0F);
    return;
  }
  const uint32_t n_groups = (n_out + kGroupRows - 1) / kGroupRows;
  const uint64_t group = group_bytes(encoding, n_in);
  const uint64_t ldy = uint64_t{n_groups} * kGroupRows;
  std::vector<float> padded(rows * ldy);
  team.run(n_groups, 1, n_groups * group / kBytesPerNs, [&](uint64_t begin, uint64_t end, uint32_t) {
    kernels.matmul(matrix.encoding, matrix.groups + begin * group, static_cast<uint32_t>(end - begin),
                   matrix.n_in, x, matrix.n_in, rows, padded.data() + begin * kGroupRows, ldy);
  });
  for (uint32_t row = 0; row < rows; ++row) {
    std::copy_n(padded.data() + row * ldy, n_out, y + uint64_t{row} * n_out);
  }
}

}  // namespace tierd
