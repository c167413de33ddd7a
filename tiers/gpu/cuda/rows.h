// Products with row groups (core/model/layout/row_group.h). Each output row of each token is summed in an
// order of its own: the columns are dealt to 8 warps and their lanes by their numbers, each lane sums in
// order, lanes and warps are added pairwise and in order. So its bits depend on no batch, chunk, message or
// neighbour.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/agent/message.h"
#include "core/model/layout/encoding.h"
#include "tiers/gpu/cuda/bitmap.h"

namespace tierd::cuda {

// All pointers are of the device. y[t*ldy + row] = sum over c of W[row, c] * x[t*ldx + c], for the row groups
// of some units in one encoding.
struct RowProduct {
  const std::byte* memory = nullptr;
  const Unit* units = nullptr;  // a unit's groups begin at memory + place * 64 + offset
  uint32_t n_units = 0;
  uint32_t groups = 0;        // of each unit, at most
  uint64_t offset = 0;        // in a unit
  uint32_t n_in = 0;          // columns, a multiple of block_values()
  uint32_t rows_of_unit = 0;  // the first row of unit u is u * rows_of_unit; 0: of experts, all begin at 0
  uint32_t row_begin = 0;     // rows outside of these are left out
  uint32_t row_end = 0;
  const float* x = nullptr;
  float* y = nullptr;
  uint32_t ldx = 0;  // multiples of 4
  uint32_t ldy = 0;
  uint32_t tokens = 0;
  // Experts: unit number i of the list has lines of its own, from i * these on; 0: all have the same.
  uint32_t x_lines = 0;
  uint32_t y_lines = 0;
  // Which token uses which unit, [unit x mask_words]; results of those that it does not use are 0.
  const uint64_t* masks = nullptr;
  uint32_t mask_words = 0;
  // Experts: token t uses unit u where choice[t * ldc + u] is not 0. Where none of a tile does, nothing is
  // computed.
  const float* choice = nullptr;
  uint32_t ldc = 0;
};
cudaError_t multiply_rows(Encoding encoding, const RowProduct& product, cudaStream_t stream);
// The same, to the bit, from units that are kept as bitmaps and were counted by tiles of row_tile(): `memory`
// and `units` of both say the same. What is malformed gives nothing.
cudaError_t multiply_bitmap_rows(Encoding encoding, const RowProduct& product, const BitmapUnits& units,
                                 cudaStream_t stream);

// out[i*ldo + c] = row `token of i` of an embedding, where one of the units has it.
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
