// The layout of a dense operator's rows in the store and in memory, which lets a kernel read them in order
// with every lane of a 512-bit vector busy.
//
// 16 consecutive output rows form a *row group*; a neuron of rows is a run of whole groups. Inside a
// group, column blocks follow each other, and inside a block the 16 rows are interleaved:
//
//   f32          per column: 16 values, row 0 … row 15                                     64 B a column
//   f16, bf16    per column: 16 values                                                     32 B a column
//   q8_0         per 32 columns: 16 f16 scales, then 8 chunks of 64 B;                    544 B a block
//                chunk c holds columns 4c … 4c+3 of row 0, then of row 1, …; each value is stored as q + 128
//                in an unsigned byte, because the dot-product instruction multiplies unsigned by signed
//   q4_0         per 32 columns: 16 f16 scales, then 4 chunks of 64 B;                    288 B a block
//                chunk c holds, row by row, the bytes 4c … 4c+3 of GGUF's block: low nibbles are columns
//                4c … 4c+3, high nibbles columns 16+4c … 16+4c+3, value = d*(q - 8)
//   q4_k, q5_k   per 256 columns: 16 d, 16 dmin (f16), then chunks of 64 B;             2304, 2816 B a block
//                a chunk holds, row by row, the next 4 bytes of GGUF's super-block (k_quants.h)
//   q6_k         the same with 16 d alone, which GGUF has last and a group first            3360 B a block
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
