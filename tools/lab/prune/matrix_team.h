// Products with the weights to prune: the kernels that run models, over a team of threads.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/model/layout/row_group.h"
#include "tiers/compute/kernels.h"
#include "tiers/compute/team.h"

namespace tierd {

// A list of vectors, such as the inputs or results of an operator for each token of a window. They begin
// `pitch` floats apart, because kernels write whole groups of 16.
struct TokenRows {
  TokenRows() = default;
  TokenRows(uint32_t count, uint32_t width);

  std::span<float> row(uint32_t i) { return {&values[uint64_t{i} * pitch], width}; }
  std::span<const float> row(uint32_t i) const { return {&values[uint64_t{i} * pitch], width}; }

  uint32_t count = 0;
  uint32_t width = 0;
  uint32_t pitch = 0;
  std::vector<float> values;  // [count x pitch]
};

// A matrix [rows x cols] in f32 in the layout of the kernels (core/model/layout/row_group.h).
struct GroupedMatrix {
  struct alignas(64) Lanes {
    std::array<float, kGroupRows> rows;
  };

  uint32_t groups() const { return (rows + kGroupRows - 1) / kGroupRows; }

  uint32_t rows = 0;
  uint32_t cols = 0;
  std::vector<Lanes> lanes;  // [groups x cols]
};

// `plain`: row by row.
GroupedMatrix pack(std::span<const float> plain, uint32_t rows, uint32_t cols);
// `columns`: column by column, beginning `pitch` floats apart.
GroupedMatrix pack_columns(const float* columns, uint64_t pitch, uint32_t rows, uint32_t cols);

// One caller at a time. The bits do not depend on the number of threads.
class MatrixTeam {
 public:
  explicit MatrixTeam(uint32_t threads);

  const ComputeKernels& kernels() const { return kernels_; }

  // out[t * pitch + r] = sum over c of matrix[r, c] * x[t * x_pitch + c], for t below `count`. The pitch of
  // out is at least groups * 16.
  void multiply(const GroupedMatrix& matrix, const float* x, uint64_t x_pitch, uint32_t count, float* out,
                uint64_t pitch);
  // Returns [x.count x matrix.rows], with the bias [matrix.rows] added unless it is empty.
  TokenRows linear(const GroupedMatrix& matrix, std::span<const float> bias, const TokenRows& x);

  // gram[a, b] += sum over the rows of x of x[a] * x[b], for b <= a; `gram` is [width x width], and values
  // above its diagonal are not changed.
  void add_gram(const TokenRows& x, std::span<float> gram);

  // Calls work(i) for each i below n, in parallel if the estimated number of products is worth it.
  void each(uint64_t n, uint64_t products, const std::function<void(uint64_t)>& work);

 private:
  const ComputeKernels& kernels_ = best_kernels();
  Team team_;
};

}  // namespace tierd
