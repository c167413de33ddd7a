#include "tiers/gpu/cuda/rows.h"

#include "core/base/row_mask.h"
#include "tiers/gpu/cuda/encoded.h"
#include "tiers/gpu/cuda/launch.h"
#include "tiers/gpu/cuda/rows_kernel.cuh"

namespace tierd::cuda {
namespace {

constexpr uint32_t kWarps = 8;  // that share the columns of a row group

// A block computes one row group of one unit for T tokens.
template <Encoding E, int T>
__global__ void __launch_bounds__(kWarps* kWarp) multiply(RowProduct p) {
  using Reader = StepReader<E>;
  constexpr int kRows = Reader::kRows;
  constexpr int kAhead = T == 1 ? Reader::kAhead : 1;  // registers are short where there are many sums
  __shared__ float of_warp[kWarps][kGroupRows][T];

  // Tiles of tokens that read the same weights follow each other.
  const uint32_t tiles = (p.tokens + T - 1) / T, tile = blockIdx.x % tiles, group_number = blockIdx.x / tiles;
  const uint32_t number = group_number / p.groups, g = group_number % p.groups;
  const Unit unit = p.units[number];
  const uint32_t first_row = unit.unit * p.rows_of_unit + g * kGroupRows;
  if (first_row < p.row_begin || first_row >= p.row_end) return;
  const uint32_t first = tile * T;
  if (p.choice != nullptr) {
    bool used = false;
    for (uint32_t t = first; t < first + T && t < p.tokens; ++t)
      used |= p.choice[uint64_t{t} * p.ldc + unit.unit] != 0;
    if (!used) return;
  }

  const float* x[T];
#pragma unroll
  for (int t = 0; t < T; ++t) {
    const uint32_t token = min(first + t, p.tokens - 1);  // what is too many is computed, and not written
    x[t] = p.x + (uint64_t{number} * p.x_lines + token) * p.ldx;
  }
  float sums[kRows][T];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int t = 0; t < T; ++t) sums[r][t] = 0;
  }

  const uint32_t warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const std::byte* const group = p.memory + unit.place * kPlaceUnit + p.offset + g * group_bytes(E, p.n_in);
  const uint32_t steps = (p.n_in + Reader::kColumns - 1) / Reader::kColumns;
  uint32_t step = warp;
  for (; step + (kAhead - 1) * kWarps < steps; step += kAhead * kWarps) {
    typename Reader::Packet packets[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) packets[i] = Reader::load(group, step + i * kWarps, lane, p.n_in);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) Reader::add(packets[i], lane, x, sums);
  }
  for (; step < steps; step += kWarps) Reader::add(Reader::load(group, step, lane, p.n_in), lane, x, sums);

  // Lanes with the same rows have other columns.
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
  for (uint32_t i = threadIdx.x; i < kGroupRows * T; i += kWarps * kWarp) {
    const uint32_t row = i % kGroupRows, t = i / kGroupRows;
    if (first + t >= p.tokens) break;
    float sum = 0;
#pragma unroll
    for (uint32_t w = 0; w < kWarps; ++w) sum += of_warp[w][row][t];
    if (p.masks != nullptr && !mask_has(p.masks + uint64_t{unit.unit} * p.mask_words, first + t)) sum = 0;
    p.y[(uint64_t{number} * p.y_lines + first + t) * p.ldy + first_row + row] = sum;
  }
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
  const auto with_tile = [&](auto kernel, uint32_t tile) {
    const uint32_t tiles = (product.tokens + tile - 1) / tile;
    return launch(kernel, dim3(product.n_units * product.groups * tiles), dim3(kWarps * kWarp), stream,
                  product);
  };
  return for_encoding(encoding, [&](auto e) {
    if (product.tokens == 1) return with_tile(multiply<e(), 1>, 1);
    if (product.tokens <= 4) return with_tile(multiply<e(), 4>, 4);
    return with_tile(multiply<e(), 8>, 8);
  });
}

cudaError_t gather_rows(Encoding encoding, const RowGather& what, cudaStream_t stream) {
  constexpr unsigned kThreads = 256;
  const dim3 grid(blocks_for(what.n_in, kThreads), what.n_rows);
  return for_encoding(encoding,
                      [&](auto e) { return launch(gather<e()>, grid, dim3(kThreads), stream, what); });
}

}  // namespace tierd::cuda
