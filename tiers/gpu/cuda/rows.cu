#include "tiers/gpu/cuda/rows.h"

#include "tiers/gpu/cuda/encoded.h"
#include "tiers/gpu/cuda/launch.h"
#include "tiers/gpu/cuda/row_value.cuh"
#include "tiers/gpu/cuda/rows_block.cuh"
#include "tiers/gpu/cuda/rows_kernel.cuh"

namespace tierd::cuda {
namespace {

// A block computes one row group of one unit for T tokens.
template <Encoding E, int T>
__global__ void __launch_bounds__(kRowWarps* kWarp) multiply(RowProduct p) {
  using Reader = StepReader<E>;
  constexpr int kRows = Reader::kRows;
  constexpr int kAhead = T == 1 ? Reader::kAhead : 1;  // many sums leave few registers
  RowBlock<T> block;
  if (!find_block(p, block)) return;
  float sums[kRows][T];
  clear_sums(sums);

  const uint32_t warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const std::byte* const group =
      p.memory + block.unit.place * kPlaceUnit + p.offset + block.group * group_bytes(E, p.n_in);
  const uint32_t steps = (p.n_in + Reader::kColumns - 1) / Reader::kColumns;
  uint32_t step = warp;
  for (; step + (kAhead - 1) * kRowWarps < steps; step += kAhead * kRowWarps) {
    typename Reader::Packet packets[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) packets[i] = Reader::load(group, step + i * kRowWarps, lane, p.n_in);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) Reader::add(packets[i], lane, block.x, sums);
  }
  for (; step < steps; step += kRowWarps)
    Reader::add(Reader::load(group, step, lane, p.n_in), lane, block.x, sums);
  write_sums(p, block, sums);
}

template <Encoding E>
__global__ void gather(RowGather g) {
  const uint32_t c = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  if (c >= g.n_in) return;
  const uint32_t token = g.rows[i].token;
  for (uint32_t u = 0; u < g.n_units; ++u) {
    if (token / g.rows_of_unit != g.units[u].unit) continue;
    const uint32_t row = token % g.rows_of_unit;
    const std::byte* const group =
        g.memory + g.units[u].place * kPlaceUnit + row / kGroupRows * group_bytes(E, g.n_in);
    g.out[uint64_t{i} * g.ldo + c] = value_in_group<E>(group, row % kGroupRows, c);
  }
}

}  // namespace

cudaError_t multiply_rows(Encoding encoding, const RowProduct& product, cudaStream_t stream) {
  return for_encoding(encoding, [&](auto e) {
    if (product.tokens == 1) return launch_rows(multiply<e(), 1>, 1, stream, product);
    if (product.tokens <= 4) return launch_rows(multiply<e(), 4>, 4, stream, product);
    return launch_rows(multiply<e(), 8>, 8, stream, product);
  });
}

cudaError_t gather_rows(Encoding encoding, const RowGather& what, cudaStream_t stream) {
  constexpr unsigned kThreads = 256;
  const dim3 grid(blocks_for(what.n_in, kThreads), what.n_rows);
  return for_encoding(encoding,
                      [&](auto e) { return launch(gather<e()>, grid, dim3(kThreads), stream, what); });
}

}  // namespace tierd::cuda
