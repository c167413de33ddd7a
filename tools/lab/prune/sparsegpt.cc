#include "tools/lab/prune/sparsegpt.h"

#include <algorithm>

namespace tierd {
namespace {

constexpr uint32_t kBlock = 128;       // columns that are updated at once, and from which one choice is made
constexpr uint32_t kRowsAtOnce = 256;  // rows whose later columns are updated together

// The block of columns [first, first + count) of all rows.
class Block {
 public:
  Block(std::span<float> weight, const InverseHessian& inverse, uint32_t first, uint32_t count)
      : weight_(weight),
        inverse_(inverse),
        first_(first),
        count_(count),
        rows_(weight.size() / inverse.width),
        pruned_(rows_ * count),
        errors_(rows_ * count) {}

  // Chooses the weights to prune over all rows.
  void choose(const Pattern& pattern) {
    std::vector<float> scores(pruned_.size());
    for (uint64_t r = 0; r < rows_; ++r) score(r, 0, std::span(scores).subspan(r * count_, count_));
    mark_smallest(scores, pattern.pruned_of(scores.size()), pruned_);
  }

  // Prunes the block's part of a row, and keeps the errors for the later columns.
  void prune_row(uint64_t r, const Pattern& pattern) {
    float* row = &weight_[r * inverse_.width + first_];
    const std::span<uint8_t> pruned = std::span(pruned_).subspan(r * count_, count_);
    for (uint32_t i = 0; i < count_; ++i) {
      if (pattern.in_groups() && i % pattern.group == 0) {
        std::vector<float> scores(pattern.group);
        score(r, i, scores);
        mark_in_groups(scores, pattern, pruned.subspan(i, pattern.group));
      }
      if (pruned[i] == 0) continue;
      const float* factor = factor_row(i);
      const float error = row[i] / factor[first_ + i];
      for (uint32_t j = i + 1; j < count_; ++j) row[j] -= error * factor[first_ + j];
      row[i] = 0;
      errors_[r * count_ + i] = error;
    }
  }

  // Updates the columns after the block, for all rows: W -= errors * U.
  void update_rest(MatrixTeam& team) {
    const uint32_t next = first_ + count_, width = inverse_.width;
    if (next == width) return;
    const GroupedMatrix factor = pack_columns(factor_row(0) + next, width, width - next, count_);
    const uint64_t pitch = uint64_t{factor.groups()} * kGroupRows;
    std::vector<float> delta(std::min<uint64_t>(rows_, kRowsAtOnce) * pitch);
    for (uint64_t r = 0; r < rows_; r += kRowsAtOnce) {
      const auto n = static_cast<uint32_t>(std::min<uint64_t>(kRowsAtOnce, rows_ - r));
      team.multiply(factor, &errors_[r * count_], count_, n, delta.data(), pitch);
      for (uint64_t i = 0; i < n; ++i) {
        float* row = &weight_[(r + i) * width + next];
        for (uint32_t j = 0; j < factor.rows; ++j) row[j] -= delta[i * pitch + j];
      }
    }
  }

 private:
  const float* factor_row(uint32_t i) const {
    return &inverse_.factor[uint64_t{first_ + i} * inverse_.width];
  }
  // Computes w^2 / U_jj^2 for the row's columns from `from` of the block on.
  void score(uint64_t r, uint32_t from, std::span<float> out) const {
    for (uint32_t i = 0; i < out.size(); ++i) {
      const uint32_t column = first_ + from + i;
      const float ratio = weight_[r * inverse_.width + column] / factor_row(from + i)[column];
      out[i] = ratio * ratio;
    }
  }

  std::span<float> weight_;
  const InverseHessian& inverse_;
  uint32_t first_;
  uint32_t count_;
  uint64_t rows_;
  std::vector<uint8_t> pruned_;  // [rows x count]
  std::vector<float> errors_;    // [rows x count]: w / U_jj of the pruned ones, else 0
};

}  // namespace

void prune_by_sparsegpt(std::span<float> weight, const InverseHessian& inverse, const Pattern& pattern,
                        MatrixTeam& team) {
  const uint32_t width = inverse.width;
  const uint64_t rows = weight.size() / width;
  for (const uint32_t channel : inverse.dead) {
    for (uint64_t r = 0; r < rows; ++r) weight[r * width + channel] = 0;
  }
  // No group may cross two blocks.
  const uint32_t columns = pattern.in_groups() ? kBlock / pattern.group * pattern.group : kBlock;
  for (uint32_t first = 0; first < width; first += columns) {
    Block block(weight, inverse, first, std::min(columns, width - first));
    if (!pattern.in_groups()) block.choose(pattern);
    team.each(rows, rows * columns * columns / 2, [&](uint64_t r) { block.prune_row(r, pattern); });
    block.update_rest(team);
  }
}

}  // namespace tierd
