// How a site is cut into neurons, and how the bytes of a neuron of a feed-forward network lie.
#pragma once

#include <cstdint>

#include "core/base/align.h"
#include "core/layout/encoding.h"

namespace tierd {

// Numbers as in the plugin interface (TIERD_AXIS_…).
enum class Axis : uint8_t {
  row = 0,      // a run of output rows of a dense operator: results are concatenated, exact in any order
  neuron = 1,   // row i of gate and up and column i of down: results are summed, in the order of the neurons
  channel = 2,  // column j of a linear operator, times input j: likewise summed
  expert = 3,   // a whole feed-forward network of a mixture, times what its router says: likewise summed
};
constexpr bool is_summed(Axis axis) {
  return axis != Axis::row;
}

// What the pieces of a bundle begin at multiples of, as spans do.
inline constexpr uint64_t kPieceAlignment = 64;

// Row i of gate (where there is one) and row i of up, in plain order, and column i of down (column.h), each
// of `cols` values, one after the other, each padded to a multiple of 64 bytes: what an arena slot holds, and
// what one read brings (LLM in a flash, 3.2: row-column bundling).
struct Bundle {
  Encoding encoding = Encoding::f32;
  uint32_t cols = 0;
  bool gated = false;

  uint32_t pieces() const { return gated ? 3 : 2; }
  uint64_t row_bytes() const { return encoded_bytes(encoding, cols); }  // of a piece, without padding
  uint64_t piece_bytes() const { return align_up(row_bytes(), kPieceAlignment); }
  uint64_t up_offset() const { return gated ? piece_bytes() : 0; }
  uint64_t down_offset() const { return up_offset() + piece_bytes(); }
  uint64_t bytes() const { return down_offset() + piece_bytes(); }
};

// Neurons whose sums are added up before they are added to the result, by their number: the order of
// arithmetic does not depend on which of them are here (CONTRACTS, rule 10).
inline constexpr uint32_t kPartialNeurons = 64;
// The same by axis: an expert is a sum by itself, and rows are none.
constexpr uint32_t partial_neurons(Axis axis) {
  return axis == Axis::neuron || axis == Axis::channel ? kPartialNeurons : 1;
}

}  // namespace tierd
