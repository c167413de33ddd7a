#include "tools/lab/prune/matrix_team.h"

#include <algorithm>

#include "core/base/align.h"

namespace tierd {
namespace {

constexpr uint32_t kTokensAtOnce = 128;  // their inputs stay in a cache while the weights stream
constexpr uint32_t kGramRows = 64;       // for one thread at a time, a multiple of 16

// Estimates a thread's time for so many products.
uint64_t cost_ns(uint64_t products) {
  constexpr uint64_t kProductsInNs = 20;
  return products / kProductsInNs;
}

const std::byte* bytes_of(const GroupedMatrix& matrix, uint64_t group) {
  return reinterpret_cast<const std::byte*>(matrix.lanes.data() + group * matrix.cols);
}

}  // namespace

TokenRows::TokenRows(uint32_t n, uint32_t of_width)
    : count(n),
      width(of_width),
      pitch(static_cast<uint32_t>(align_up(of_width, kGroupRows))),
      values(uint64_t{n} * pitch) {}

GroupedMatrix pack(std::span<const float> plain, uint32_t rows, uint32_t cols) {
  GroupedMatrix packed{rows, cols, {}};
  packed.lanes.resize(uint64_t{packed.groups()} * cols);
  for (uint64_t r = 0; r < rows; ++r) {
    GroupedMatrix::Lanes* out = &packed.lanes[r / kGroupRows * cols];
    for (uint64_t c = 0; c < cols; ++c) out[c].rows[r % kGroupRows] = plain[r * cols + c];
  }
  return packed;
}

GroupedMatrix pack_columns(const float* columns, uint64_t pitch, uint32_t rows, uint32_t cols) {
  GroupedMatrix packed{rows, cols, {}};
  packed.lanes.resize(uint64_t{packed.groups()} * cols);
  for (uint64_t g = 0; g < packed.groups(); ++g) {
    const uint64_t first = g * kGroupRows, n = std::min<uint64_t>(kGroupRows, rows - first);
    for (uint64_t c = 0; c < cols; ++c)
      std::copy_n(columns + c * pitch + first, n, packed.lanes[g * cols + c].rows.begin());
  }
  return packed;
}

MatrixTeam::MatrixTeam(uint32_t threads) : team_({.workers = std::max(1u, threads), .spin_ns = 0}) {}

void MatrixTeam::multiply(const GroupedMatrix& matrix, const float* x, uint64_t x_pitch, uint32_t count,
                          float* out, uint64_t pitch) {
  team_.run(matrix.groups(), 1, cost_ns(uint64_t{matrix.rows} * matrix.cols * count),
            [&](uint64_t begin, uint64_t end, uint32_t) {
              for (uint32_t t = 0; t < count; t += kTokensAtOnce) {
                kernels_.matmul(Encoding::f32, bytes_of(matrix, begin), static_cast<uint32_t>(end - begin),
                                matrix.cols, x + t * x_pitch, x_pitch, std::min(kTokensAtOnce, count - t),
                                out + t * pitch + begin * kGroupRows, pitch);
              }
            });
}

TokenRows MatrixTeam::linear(const GroupedMatrix& matrix, std::span<const float> bias, const TokenRows& x) {
  TokenRows out(x.count, matrix.rows);
  multiply(matrix, x.values.data(), x.pitch, x.count, out.values.data(), out.pitch);
  if (bias.empty()) return out;
  for (uint32_t t = 0; t < out.count; ++t) kernels_.add(out.row(t).data(), bias.data(), out.width);
  return out;
}

void MatrixTeam::add_gram(const TokenRows& x, std::span<float> gram) {
  const GroupedMatrix channels = pack_columns(x.values.data(), x.pitch, x.width, x.count);
  const uint32_t pieces = static_cast<uint32_t>(divide_up(x.width, kGramRows));
  each(pieces, uint64_t{x.width} * x.width / 2 * x.count, [&](uint64_t piece) {
    const uint32_t first = static_cast<uint32_t>(piece) * kGramRows;
    const uint32_t n = std::min(kGramRows, x.width - first);
    std::vector<float> turned(uint64_t{n} * x.count);
    for (uint32_t t = 0; t < x.count; ++t) {
      for (uint32_t i = 0; i < n; ++i) turned[uint64_t{i} * x.count + t] = x.row(t)[first + i];
    }
    // The other factor is the channels up to the last of these rows.
    const auto groups = static_cast<uint32_t>(divide_up(first + n, kGroupRows));
    std::vector<float> sums(uint64_t{n} * groups * kGroupRows);
    const uint64_t pitch = uint64_t{groups} * kGroupRows;
    kernels_.matmul(Encoding::f32, bytes_of(channels, 0), groups, x.count, turned.data(), x.count, n,
                    sums.data(), pitch);
    for (uint64_t i = 0; i < n; ++i) {
      float* row = &gram[(first + i) * x.width];
      for (uint64_t b = 0; b <= first + i; ++b) row[b] += sums[i * pitch + b];
    }
  });
}

void MatrixTeam::each(uint64_t n, uint64_t products, const std::function<void(uint64_t)>& work) {
  team_.run(n, 1, cost_ns(products), [&](uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t i = begin; i < end; ++i) work(i);
  });
}

}  // namespace tierd
