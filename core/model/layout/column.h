// An operator that is cut into its input channels, and the layout of a column of weights in the store and in
// memory: input j of such an operator, or column i of `down` in a bundle. Different tokens read different
// columns, so each column is contiguous; inside it, the data of one vector instruction is contiguous.
//
//   f32, f16, bf16   value after value
//   q8_0, q4_0       strips of 16 blocks (512 values): their 16 scales (f16), then their values, block after
//                    block as in the plain order, 32 or 16 bytes each. The last strip may have fewer blocks.
//
// Sizes equal those of the plain order. Other encodings have no columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/align.h"
#include "core/model/layout/bundle.h"
#include "core/model/layout/encoding.h"

namespace tierd {

// Column j of stacked operators: the content of an arena slot. The last block is padded with zero values.
struct Column {
  Encoding encoding = Encoding::f32;
  uint32_t rows = 0;

  uint32_t values() const { return align_up(rows, block_values(encoding)); }
  uint64_t encoded() const { return encoded_bytes(encoding, values()); }  // without padding
  uint64_t bytes() const { return align_up(encoded(), kPieceAlignment); }
};

// Neuron j is input channel j of operators that share an input, stacked along their output rows. Results are
// added.
struct Columns {
  uint32_t n_in = 0;   // neurons
  uint32_t n_out = 0;  // outputs of all operators together

  static constexpr bool kAdded = true;
  static constexpr uint32_t kRun = kPartialNeurons;

  uint32_t inputs() const { return n_in; }
  uint32_t outputs() const { return n_out; }
  uint32_t neurons() const { return n_in; }

  Column column(const Encodings& encodings) const { return {encodings.front(), n_out}; }
  uint64_t bytes(const Encodings& encodings, uint32_t /*neuron*/) const { return column(encodings).bytes(); }
  uint64_t tensor_bytes(const Encodings& encodings) const { return n_in * column(encodings).encoded(); }
};

inline constexpr uint32_t kStripBlocks = 16;
inline constexpr uint32_t kScaleBytes = 2;

// Returns the bytes of a block's values, without its scale.
constexpr uint32_t quant_bytes(Encoding e) {
  return block_bytes(e) - kScaleBytes;
}

// The positions of a block's scale and values in a column of `blocks` blocks, in bytes from its beginning.
struct BlockPlace {
  uint64_t scale;
  uint64_t quants;
};
constexpr BlockPlace place_in_column(Encoding e, uint32_t blocks, uint32_t block) {
  const uint32_t in_strip = block % kStripBlocks, first = block - in_strip;
  const uint64_t strip = uint64_t{first} * block_bytes(e);
  // Without std::min, whose references to constants device code of a GPU cannot use.
  const uint32_t left = blocks - first, scales = left < kStripBlocks ? left : kStripBlocks;
  return {strip + in_strip * kScaleBytes, strip + scales * kScaleBytes + in_strip * quant_bytes(e)};
}

// As encode and decode (codec.h), for a whole column: values.size() is a multiple of block_values(e),
// `column` has encoded_bytes(e, values.size()) bytes.
void encode_column(Encoding e, std::span<const float> values, std::span<std::byte> column);
void decode_column(Encoding e, std::span<const std::byte> column, std::span<float> values);

}  // namespace tierd
