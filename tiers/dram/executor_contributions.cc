// What neurons give to each row, beside what they give to the results.
#include <cmath>
#include <vector>

#include "core/layout/codec.h"
#include "tiers/dram/executor.h"

namespace tierd {

void Executor::measure(const SiteWork& site, const Column& column, std::span<const Unit> units,
                       std::span<const std::byte* const> columns, const float* factors, size_t stride,
                       uint32_t rows, uint64_t begin, uint64_t end) {
  std::vector<float> values(column.values());
  for (uint64_t k = begin; k < end; ++k) {
    decode_column(column.encoding, {columns[k], column.encoded()}, values);
    double squares = 0;
    for (const float value : values) squares += double{value} * value;
    const auto length = static_cast<float>(std::sqrt(squares));
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
