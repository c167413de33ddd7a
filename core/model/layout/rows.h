// A dense operator that is cut into runs of output rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/base/align.h"
#include "core/model/layout/encodings.h"
#include "core/model/layout/row_group.h"

namespace tierd {

// Neuron i is `rows` rows, from row i * rows on, in row groups (row_group.h). Results have their own places,
// so that they are exact in any order. Operators that share an input are stacked: if they differ in encoding,
// each begins with a new neuron, so that a neuron has one encoding.
struct Rows {
  uint32_t n_in = 0;
  std::vector<uint32_t> stacked;  // rows of each operator
  uint32_t rows = 0;              // of a neuron, a multiple of kGroupRows; the last neuron may have fewer

  static constexpr bool kAdded = false;
  static constexpr uint32_t kRun = 1;

  uint32_t inputs() const { return n_in; }
  uint32_t outputs() const { return std::accumulate(stacked.begin(), stacked.end(), 0u); }
  uint32_t neurons() const { return rows == 0 ? 0 : static_cast<uint32_t>(divide_up(outputs(), rows)); }

  uint32_t first_row(uint32_t neuron) const { return neuron * rows; }
  uint32_t rows_of(uint32_t neuron) const { return std::min(rows, outputs() - first_row(neuron)); }
  uint32_t groups_of(uint32_t neuron) const {
    return static_cast<uint32_t>(divide_up(rows_of(neuron), kGroupRows));
  }
  // Returns the operator that a row belongs to.
  size_t operator_of(uint32_t row) const {
    size_t part = 0;
    for (; part + 1 < stacked.size() && row >= stacked[part]; ++part) row -= stacked[part];
    return part;
  }
  Encoding encoding_of(uint32_t neuron, const Encodings& encodings) const {
    return encodings[operator_of(first_row(neuron))];
  }

  // Returns the bytes of whole row groups, without padding.
  uint64_t bytes(const Encodings& encodings, uint32_t neuron) const {
    return groups_of(neuron) * group_bytes(encoding_of(neuron, encodings), n_in);
  }
  // Returns the bytes of the weights alone, without padding.
  uint64_t tensor_bytes(const Encodings& encodings) const {
    uint64_t bytes = 0;
    for (size_t part = 0; part < stacked.size(); ++part)
      bytes += stacked[part] * encoded_bytes(encodings[part], n_in);
    return bytes;
  }
};

}  // namespace tierd
