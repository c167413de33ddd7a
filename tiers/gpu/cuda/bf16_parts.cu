#include "tiers/gpu/cuda/bf16_parts.h"

#include "tiers/gpu/cuda/encoded.h"
#include "tiers/gpu/cuda/launch.h"
#include "tiers/gpu/cuda/row_value.cuh"

namespace tierd::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kColumns = 64;  // columns that a block transposes at a time
constexpr uint32_t kBetween = 2;   // padding numbers between the rows of a tile, so that they fall into
                                   // different banks

struct Place {
  Unit unit;
  uint32_t group = 0;  // of the unit
  uint32_t first_row = 0;
  bool wanted = false;
};

__device__ Place place_of(const SomeGroups& groups, uint32_t i) {
  const RowProduct& p = groups.product;
  Place place;
  place.unit = p.units[(groups.first + i) / p.groups];
  place.group = (groups.first + i) % p.groups;
  place.first_row = place.unit.unit * p.rows_of_unit + place.group * kGroupRows;
  place.wanted = place.first_row >= p.row_begin && place.first_row < p.row_end;
  return place;
}

// Rows are interleaved in a group and contiguous in the result: a block reads some columns of a group in
// stored order and writes them row by row.
template <Encoding E>
__global__ void __launch_bounds__(kThreads) unpack(SomeGroups groups, Bf16Lines out) {
  __shared__ uint16_t high[kGroupRows][kColumns + kBetween];
  __shared__ uint16_t low[kGroupRows][kColumns + kBetween];
  const RowProduct& p = groups.product;
  const Place place = place_of(groups, blockIdx.y);
  const std::byte* const group = p.memory + place.unit.place * kPlaceUnit + p.offset +
                                 (place.wanted ? place.group * group_bytes(E, p.n_in) : 0);
  const uint32_t begin = blockIdx.x * kColumns;
  for (uint32_t i = threadIdx.x; i < kGroupRows * kColumns; i += kThreads) {
    const uint32_t row = i % kGroupRows, column = i / kGroupRows, c = begin + column;
    const float value = place.wanted && c < p.n_in ? value_in_group<E>(group, row, c) : 0;
    high[row][column] = to_bf16(value);
    low[row][column] = rest_of_bf16(value, high[row][column]);
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < kGroupRows * kColumns; i += kThreads) {
    const uint32_t row = i / kColumns, column = i % kColumns, c = begin + column;
    if (c >= out.ld) continue;
    const uint64_t at = (uint64_t{blockIdx.y} * kGroupRows + row) * out.ld + c;
    out.high[at] = high[row][column];
    if (out.low != nullptr) out.low[at] = low[row][column];
  }
}

__global__ void split(RowProduct p, Bf16Lines out) {
  const uint32_t c = blockIdx.x * blockDim.x + threadIdx.x, token = blockIdx.y;
  if (c >= out.ld) return;
  const float value = token < p.tokens && c < p.n_in ? p.x[uint64_t{token} * p.ldx + c] : 0;
  const uint64_t at = uint64_t{token} * out.ld + c;
  out.high[at] = to_bf16(value);
  out.low[at] = rest_of_bf16(value, out.high[at]);
}

__global__ void place(SomeGroups groups, const float* results, uint32_t ld) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, token = blockIdx.y;
  if (i >= groups.n * kGroupRows) return;
  const Place to = place_of(groups, i / kGroupRows);
  if (!to.wanted) return;
  groups.product.y[uint64_t{token} * groups.product.ldy + to.first_row + i % kGroupRows] =
      results[uint64_t{token} * ld + i];
}

}  // namespace

cudaError_t unpack_groups(Encoding encoding, const SomeGroups& groups, const Bf16Lines& out,
                          cudaStream_t stream) {
  const dim3 grid(blocks_for(out.ld, kColumns), groups.n);
  return for_encoding(encoding,
                      [&](auto e) { return launch(unpack<e()>, grid, dim3(kThreads), stream, groups, out); });
}

cudaError_t split_tokens(const RowProduct& product, uint32_t lines, const Bf16Lines& out,
                         cudaStream_t stream) {
  return launch(split, dim3(blocks_for(out.ld, kThreads), lines), dim3(kThreads), stream, product, out);
}

cudaError_t place_results(const SomeGroups& groups, const float* results, uint32_t ld, cudaStream_t stream) {
  const dim3 grid(blocks_for(uint64_t{groups.n} * kGroupRows, kThreads), groups.product.tokens);
  return launch(place, grid, dim3(kThreads), stream, groups, results, ld);
}

}  // namespace tierd::cuda
