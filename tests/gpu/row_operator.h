// Weights for the tests of products.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/agent/message.h"
#include "core/base/random.h"
#include "core/model/layout/codec.h"
#include "core/model/layout/row_group.h"
#include "tiers/gpu/cuda/rows.h"

namespace tierd::cuda {

// An operator of one encoding, cut into neurons of `rows_of_unit` rows at arbitrary places.
struct RowOperator {
  RowOperator(Encoding encoding, uint32_t n_in, uint32_t n_out, uint32_t rows_of_unit, Random& random)
      : e(encoding), cols(n_in), outs(n_out), per_unit(rows_of_unit) {
    units = (outs + per_unit - 1) / per_unit;
    slot = (per_unit + kGroupRows - 1) / kGroupRows * group_bytes(e, cols);
    slot = (slot + kPlaceUnit - 1) / kPlaceUnit * kPlaceUnit;
    memory.resize(slot * units);
    for (uint32_t row = 0; row < outs; row += kGroupRows) {
      const uint32_t n = std::min(kGroupRows, outs - row);
      std::vector<float> values(uint64_t{n} * cols);
      for (float& v : values) v = random.symmetric();
      std::vector<std::byte> plain(n * encoded_bytes(e, cols));
      for (uint32_t r = 0; r < n; ++r)
        encode(e, std::span(values).subspan(uint64_t{r} * cols, cols),
               std::span(plain).subspan(r * encoded_bytes(e, cols), encoded_bytes(e, cols)));
      pack_row_group(e, n, cols, plain, group(row));
    }
  }
  Unit unit(uint32_t number) const {
    return {number, static_cast<uint32_t>((units - 1 - number) * slot / kPlaceUnit)};
  }
  std::span<std::byte> group(uint32_t row) {
    const uint64_t at =
        unit(row / per_unit).place * kPlaceUnit + row % per_unit / kGroupRows * group_bytes(e, cols);
    return std::span(memory).subspan(at, group_bytes(e, cols));
  }
  // Returns a product with some of its units, on the device. The caller sets activations, results and tokens.
  RowProduct product(const std::byte* weights, const Unit* list, size_t n_units) const {
    return {.memory = weights,
            .units = list,
            .n_units = static_cast<uint32_t>(n_units),
            .groups = (per_unit + kGroupRows - 1) / kGroupRows,
            .n_in = cols,
            .rows_of_unit = per_unit,
            .row_end = outs};
  }
  std::vector<float> row(uint32_t r) {
    std::vector<float> values(cols);
    unpack_row(e, r % kGroupRows, group(r), values);
    return values;
  }

  Encoding e;
  uint32_t cols, outs, per_unit, units = 0;
  uint64_t slot = 0;
  std::vector<std::byte> memory;
};

}  // namespace tierd::cuda
