#include "tiers/gpu/cuda/rows.h"

#include "tiers/gpu/cuda/encoded.h"
#include "tiers/gpu/cuda/launch.h"
#include "tiers/gpu/cuda/rows_block.cuh"
#include "tiers/gpu/cuda/rows_kernel.cuh"

namespace tierd::cuda {
namespace {

// A block computes one row group of one unit for T tokens.
template <Encoding E, int T>
__global__ void __launch_bounds__(kRowWarps* kWarp) multiply(RowProduct p) {
  using Reader = StepReader<E>;
  constexpr int kRows = Reader::kRows;
  constexpr int kAhead = T == 1 ? Reader::kAhead : 1;  // registers are short where there are many sums
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

// The value of column c of a row in a group.
template <Encoding E>
__device__ float value_in_group(const std::byte* group, uint32_t row, uint32_t c) {
  if constexpr (E == Encoding::f32) {
    return reinterpret_cast<const float*>(group)[c * kGroupRows + row];
  } else if constexpr (E == Encoding::f16) {
    return f16_value(load_u16(group + (uint64_t{c} * kGroupRows + row) * 2));
  } else if constexpr (E == Encoding::bf16) {
    return bf16_value(load_u16(group + (uint64_t{c} * kGroupRows + row) * 2));
  } else if constexpr (E == Encoding::q8_0 || E == Encoding::q4_0) {
    const std::byte* const block = group + c / kQuantBlock * uint64_t{kGroupRows * block_bytes(E)};
    const uint32_t j = c % kQuantBlock, byte = E == Encoding::q8_0 ? j : j % 16;
    const auto stored = static_cast<uint32_t>(block[32 + (byte / 4 * kGroupRows + row) * 4 + byte % 4]);
    const float scale = f16_value(load_u16(block + row * 2));
    if constexpr (E == Encoding::q8_0) return scale * byte_value(stored, 0, 128);
    return scale * byte_value(j < 16 ? stored & 15 : stored >> 4, 0, 8);
  } else {
    // As the lane of a warp that has these columns; the packet has four rows.
    using Reader = StepReader<E>;
    const uint32_t in_block = c % kSuperBlock, run = in_block / 32, lane = in_block % 32 / 4 * 4 + row / 4;
    const auto packet = Reader::load(group, c / kSuperBlock, lane, 0);
    float d[4];
    unpack_f16_pairs(packet.d.x, packet.d.y, d);
    float q[4];
    Reader::quants(packet, static_cast<int>(run), static_cast<int>(row % 4), q);
    if constexpr (Reader::kHasMin) {
      float dmin[4], scale, min;
      unpack_f16_pairs(packet.dmin.x, packet.dmin.y, dmin);
      Reader::block_scale(packet, static_cast<int>(run), static_cast<int>(row % 4), scale, min);
      return d[row % 4] * scale * q[c % 4] - dmin[row % 4] * min;
    } else {
      return d[row % 4] * Reader::block_step(packet, static_cast<int>(run), static_cast<int>(row % 4), lane) *
             q[c % 4];
    }
  }
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
