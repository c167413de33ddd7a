// A feed-forward network that is cut into its neurons: LLM in a flash, section 3.2, row-column bundling.
#pragma once

#include <cstdint>

#include "core/base/align.h"
#include "core/model/layout/encodings.h"

namespace tierd {

// The number of neurons, by number, whose results are summed by themselves before the sum is added to the
// site's: so the order of additions does not depend on which neurons are present.
inline constexpr uint32_t kPartialNeurons = 64;

// The alignment of a bundle's pieces, and of spans.
inline constexpr uint64_t kPieceAlignment = 64;

// Row i of gate (if there is one) and row i of up, in plain order, and column i of down (column.h), each of
// `cols` values, one after the other, each padded to 64 bytes: the content of an arena slot and of one read.
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

// Neuron i is the bundle of row i of gate and of up and of column i of down. Results are added.
struct Bundles {
  uint32_t width = 0;  // of the hidden state: columns of gate and up, rows of down
  uint32_t inner = 0;  // neurons
  bool gated = false;

  static constexpr bool kAdded = true;
  static constexpr uint32_t kRun = kPartialNeurons;

  uint32_t inputs() const { return width; }
  uint32_t outputs() const { return width; }
  uint32_t neurons() const { return inner; }

  Bundle bundle(const Encodings& encodings) const { return {encodings.front(), width, gated}; }
  uint64_t bytes(const Encodings& encodings, uint32_t /*neuron*/) const { return bundle(encodings).bytes(); }
  uint64_t tensor_bytes(const Encodings& encodings) const {
    return uint64_t{inner} * bundle(encodings).pieces() * bundle(encodings).row_bytes();
  }
};

}  // namespace tierd
