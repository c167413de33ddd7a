// The layout of a dense operator's rows in the store and in memory, which lets a kernel read them in order
// with every lane of a 512-bit vector busy.
//
// 16 consecutive output rows form a *row group*; a neuron of rows is a run of whole groups. Inside a
// group, column blocks follow each other, and inside a block the 16 rows are interleaved:
//
//   f32          per column: 16 values, row 0 … row 15                                     64 B a column
//   f16, bf16    per column: 16 values                                                     32 B a column
//   others       per block (block_layout.h): the first factor of 16 rows, the second, if any; then for each
//                word of a block a *chunk* of 64 B, the word of row 0, of row 1 …; so four columns of 16 rows
//                of q8_0, eight of q4_0
//
// Sizes equal those of the plain order. Missing rows of the last group are zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/model/layout/encoding.h"

namespace tierd {

inline constexpr uint32_t kGroupRows = 16;

constexpr uint64_t group_bytes(Encoding e, uint32_t cols) {
  return kGroupRows * encoded_bytes(e, cols);
}

// Packs `rows` (1 … 16) rows of `cols` columns, given one after another in plain order, into one group.
// `group` has exactly group_bytes(e, cols) bytes.
void pack_row_group(Encoding e, uint32_t rows, uint32_t cols, std::span<const std::byte> plain,
                    std::span<std::byte> group);

// The inverse for one row (0 … 15): its bytes in plain order, and its values.
void unpack_row_bytes(Encoding e, uint32_t row, std::span<const std::byte> group, std::span<std::byte> out);
void unpack_row(Encoding e, uint32_t row, std::span<const std::byte> group, std::span<float> out);

}  // namespace tierd
