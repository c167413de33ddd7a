// Products with row groups (core/model/layout/row_group.h). Each output row of each token is summed in a
// fixed order: the columns are dealt to 8 warps and their lanes by number, each lane sums in order, lanes and
// warps are added pairwise and in order. So its bits depend on no batch, chunk, message or neighbour.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/agent/message.h"
#include "core/model/layout/encoding.h"
#include "tiers/gpu/cuda/bitmap.h"

namespace tierd::cuda {

// All pointers are device pointers. y[t*ldy + row] = sum over c of W[row, c] * x[t*ldx + c], for the row
// groups of some units in one encoding.
struct RowProduct {
  const std::byte* memory = nullptr;
  const Unit* units = nullptr;  // a unit's groups begin at memory + place * 64 + offset
  uint32_t n_units = 0;
  uint32_t groups = 0;        // of each unit, at most
  uint64_t offset = 0;        // in a unit
  uint32_t n_in = 0;          // columns, a multiple of block_values()
  uint32_t rows_of_unit = 0;  // the first row of unit u is u * rows_of_unit; 0: experts, each of which begins
                              // at row 0
  uint32_t row_begin = 0;     // rows outside [row_begin, row_end) are left out
  uint32_t row_end = 0;
  const float* x = nullptr;
  float* y = nullptr;
  uint32_t ldx = 0;  // multiple of 4
  uint32_t ldy = 0;
  uint32_t tokens = 0;
  // Experts: the lines of unit number i of the list begin at i times this; 0: all units share the same lines.
  uint32_t x_lines = 0;
  uint32_t y_lines = 0;
  // The tokens that use a unit, as bits, [unit x mask_words]; results of units that a token does not use are
  // 0.
  const uint64_t* masks = nullptr;
  uint32_t mask_words = 0;
  // Experts: token t uses unit u if choice[t * ldc + u] is not 0. Tiles of tokens that do not are skipped.
  const float* choice = nullptr;
  uint32_t ldc = 0;
};
cudaError_t multiply_rows(Encoding encoding, const RowProduct& product, cudaStream_t stream);
// The same bits as multiply_rows, from units that are stored as bitmaps and were counted with tiles of
// row_tile(). `memory` and `units` are the same in both arguments. Nothing is written for a malformed unit.
cudaError_t multiply_bitmap_rows(Encoding encoding, const RowProduct& product, const BitmapUnits& units,
                                 cudaStream_t stream);

// out[i*ldo + c] = the embedding's row of token i, if one of the units has it.
struct RowGather {
  const std::byte* memory = nullptr;
  const Unit* units = nullptr;
  uint32_t n_units = 0;
  uint32_t rows_of_unit = 0;
  uint32_t n_in = 0;
  const RowInfo* rows = nullptr;
  uint32_t n_rows = 0;
  float* out = nullptr;
  uint32_t ldo = 0;
};
cudaError_t gather_rows(Encoding encoding, const RowGather& gather, cudaStream_t stream);
cudaError_t gather_bitmap_rows(Encoding encoding, const RowGather& gather, const BitmapUnits& units,
                               cudaStream_t stream);

}  // namespace tierd::cuda
