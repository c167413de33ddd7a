// Shared parts of the kernels that compute a row group for some tokens, whatever its weights' format: finding
// the block's group, and adding the sums of lanes and warps in the one order of a row.
#pragma once

#include "core/base/row_mask.h"
#include "core/model/layout/row_group.h"
#include "tiers/gpu/cuda/device_values.cuh"
#include "tiers/gpu/cuda/launch.h"
#include "tiers/gpu/cuda/rows.h"

namespace tierd::cuda {

inline constexpr uint32_t kRowWarps = 8;  // the columns of a row group are dealt to these warps, step by step

template <int T>
struct RowBlock {
  Unit unit;
  uint32_t number;  // of the unit in the list
  uint32_t group;   // of the unit
  uint32_t first_row;
  uint32_t first_token;
  const float* x[T];
};

// Returns false, for the whole block, if there is nothing to compute.
template <int T>
__device__ bool find_block(const RowProduct& p, RowBlock<T>& block) {
  // Tiles of tokens that read the same weights have consecutive block numbers.
  const uint32_t tiles = (p.tokens + T - 1) / T, tile = blockIdx.x % tiles, group_number = blockIdx.x / tiles;
  block.number = group_number / p.groups;
  block.group = group_number % p.groups;
  block.unit = p.units[block.number];
  block.first_row = block.unit.unit * p.rows_of_unit + block.group * kGroupRows;
  if (block.first_row < p.row_begin || block.first_row >= p.row_end) return false;
  const uint32_t first = block.first_token = tile * T;
  if (p.choice != nullptr) {
    bool used = false;
    for (uint32_t t = first; t < first + T && t < p.tokens; ++t)
      used |= p.choice[uint64_t{t} * p.ldc + block.unit.unit] != 0;
    if (!used) return false;
  }
#pragma unroll
  for (int t = 0; t < T; ++t) {
    const uint32_t token = min(first + t, p.tokens - 1);  // results beyond the last token are not written
    block.x[t] = p.x + (uint64_t{block.number} * p.x_lines + token) * p.ldx;
  }
  return true;
}

template <int kRows, int T>
__device__ void clear_sums(float (&sums)[kRows][T]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int t = 0; t < T; ++t) sums[r][t] = 0;
  }
}

// Called by the whole block; each lane passes the sums of its columns.
template <int kRows, int T>
__device__ void write_sums(const RowProduct& p, const RowBlock<T>& block, const float (&sums)[kRows][T]) {
  __shared__ float of_warp[kRowWarps][kGroupRows][T];
  const uint32_t warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  // Lanes with the same rows have different columns.
  constexpr uint32_t kApart = kGroupRows / kRows;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int t = 0; t < T; ++t) {
      float sum = sums[r][t];
#pragma unroll
      for (uint32_t i = kApart; i < kWarp; i *= 2) sum += __shfl_xor_sync(~0u, sum, i);
      if (lane < kApart) of_warp[warp][lane * kRows + r][t] = sum;
    }
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < kGroupRows * T; i += kRowWarps * kWarp) {
    const uint32_t row = i % kGroupRows, t = i / kGroupRows, token = block.first_token + t;
    if (token >= p.tokens) break;
    float sum = 0;
#pragma unroll
    for (uint32_t w = 0; w < kRowWarps; ++w) sum += of_warp[w][row][t];
    if (p.masks != nullptr && !mask_has(p.masks + uint64_t{block.unit.unit} * p.mask_words, token)) sum = 0;
    p.y[(uint64_t{block.number} * p.y_lines + token) * p.ldy + block.first_row + row] = sum;
  }
}

// Launches one block for each row group of each unit and each `tile` tokens.
template <class... P>
cudaError_t launch_rows(void (*kernel)(RowProduct, P...), uint32_t tile, cudaStream_t stream,
                        const RowProduct& product, const P&... more) {
  const uint32_t tiles = (product.tokens + tile - 1) / tile;
  return launch(kernel, dim3(product.n_units * product.groups * tiles), dim3(kRowWarps * kWarp), stream,
                product, more...);
}

}  // namespace tierd::cuda
