// Contributions of neurons to each row, which are computed beside the results.
#include <cmath>
#include <limits>
#include <vector>

#include "core/model/layout/codec.h"
#include "tiers/dram/executor.h"

namespace tierd {

// Decoding a column takes a hundred times as long as multiplying with it, and its length never changes: a
// model of 1.5 billion weights took 4 s a step before lengths were kept.
float* Executor::column_lengths(const SiteWork& site, uint32_t edition) {
  if (column_lengths_.size() <= edition) column_lengths_.resize(edition + 1u);
  std::vector<float>& lengths = column_lengths_[edition];
  if (lengths.empty()) lengths.assign(tierd::neurons(site.cut), std::numeric_limits<float>::quiet_NaN());
  return lengths.data();
}

void Executor::measure(const SiteWork& site, const Column& column, std::span<const Unit> units,
                       std::span<const std::byte* const> columns, float* lengths, const float* factors,
                       size_t stride, uint32_t rows, uint64_t begin, uint64_t end) {
  std::vector<float> values(column.values());
  for (uint64_t k = begin; k < end; ++k) {
    float& length = lengths[units[k].unit];
    if (std::isnan(length)) {
      decode_column(column.encoding, {columns[k], column.encoded()}, values);
      double squares = 0;
      for (const float value : values) squares += double{value} * value;
      length = static_cast<float>(std::sqrt(squares));
    }
    for (uint32_t i = 0; i < rows; ++i)
      row(site.contribution, i)[units[k].unit] = std::abs(factors[i * stride + k]) * length;
  }
}

void Executor::tell(const SiteWork& site, std::span<const Unit> units, const float* factors, size_t stride,
                    uint32_t rows) {
  for (uint32_t i = 0; i < rows; ++i) {
    float* const contribution = row(site.contribution, i);
    for (size_t k = 0; k < units.size(); ++k) contribution[units[k].unit] = std::abs(factors[i * stride + k]);
  }
}

}  // namespace tierd
