#include "tiers/gpu/cuda/sums.h"

#include "core/base/row_mask.h"
#include "core/model/layout/column.h"
#include "tiers/gpu/cuda/activation.cuh"
#include "tiers/gpu/cuda/encoded.h"
#include "tiers/gpu/cuda/launch.h"
#include "tiers/gpu/cuda/rows_kernel.cuh"

namespace tierd::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kWarps = kThreads / kWarp;

// Eight values of a row in plain order, part number `part` of it: columns first … first + 3 and second …
// second + 3. Values behind the row's last are 0.
struct Eight {
  float values[8];
  uint32_t first;
  uint32_t second;
};
__device__ inline void load_bytes(const std::byte* at, uint32_t (&words)[2], int n) {
  for (int i = 0; i < n; ++i) words[i] = load_u16(at + i * 4) | load_u16(at + i * 4 + 2) << 16;
}
template <Encoding E>
__device__ Eight eight_of_row(const std::byte* row, uint32_t part, uint32_t n) {
  Eight eight;
  eight.first = part * 8;
  eight.second = eight.first + 4;
  if constexpr (E == Encoding::q8_0) {
    const std::byte* const block = row + part / 4 * uint64_t{block_bytes(E)};
    const float scale = f16_value(load_u16(block));
    uint32_t words[2];
    load_bytes(block + 2 + part % 4 * 8, words, 2);
    for (uint32_t i = 0; i < 8; ++i)
      eight.values[i] = scale * byte_value(words[i / 4] ^ 0x80808080u, i % 4, 128);
  } else if constexpr (E == Encoding::q4_0) {
    const std::byte* const block = row + part / 4 * uint64_t{block_bytes(E)};
    const float scale = f16_value(load_u16(block));
    uint32_t words[2];
    load_bytes(block + 2 + part % 4 * 4, words, 1);
    for (uint32_t i = 0; i < 4; ++i) {
      eight.values[i] = scale * byte_value(words[0] & 0x0f0f0f0fu, i, 8);
      eight.values[4 + i] = scale * byte_value(words[0] >> 4 & 0x0f0f0f0fu, i, 8);
    }
    eight.first = part / 4 * kQuantBlock + part % 4 * 4;
    eight.second = eight.first + 16;
  } else {
    const uint32_t here = n - part * 8;
    for (uint32_t i = 0; i < 8; ++i) {
      if constexpr (E == Encoding::f32) {
        eight.values[i] = i < here ? reinterpret_cast<const float*>(row)[part * 8 + i] : 0.0F;
      } else {
        const uint32_t bits = i < here ? load_u16(row + (part * 8 + i) * 2ull) : 0;
        eight.values[i] = E == Encoding::f16 ? f16_value(bits) : bf16_value(bits);
      }
    }
  }
  return eight;
}

// Multiplies a row in plain order by T tokens, by one warp; every lane gets the sums.
template <Encoding E, int T>
__device__ void dot_row(const std::byte* row, uint32_t n, const float* const (&x)[T], float (&sums)[T]) {
  for (int t = 0; t < T; ++t) sums[t] = 0;
  for (uint32_t part = threadIdx.x % kWarp; part * 8 < n; part += kWarp) {
    const Eight eight = eight_of_row<E>(row, part, n);
#pragma unroll
    for (int t = 0; t < T; ++t) {
#pragma unroll
      for (uint32_t i = 0; i < 8; ++i) {
        const uint32_t c = i < 4 ? eight.first + i : eight.second + i - 4;
        if (c < n) sums[t] = __fmaf_rn(eight.values[i], x[t][c], sums[t]);
      }
    }
  }
#pragma unroll
  for (int t = 0; t < T; ++t) {
#pragma unroll
    for (uint32_t i = 1; i < kWarp; i *= 2) sums[t] += __shfl_xor_sync(~0u, sums[t], i);
  }
}

// A warp computes one neuron for T tokens.
template <Encoding E, int T>
__global__ void __launch_bounds__(kThreads) values_of(BundleValues b) {
  const uint32_t k = blockIdx.x * kWarps + threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  if (k >= b.n_units) return;
  const Unit unit = b.units[k];
  const std::byte* const bundle = b.memory + unit.place * kPlaceUnit;
  const uint32_t first = blockIdx.y * T;
  const float* x[T];
#pragma unroll
  for (int t = 0; t < T; ++t) x[t] = b.x + uint64_t{min(first + t, b.tokens - 1)} * b.ldx;
  float up[T], gate[T];
  dot_row<E, T>(bundle + b.up_offset, b.n_in, x, up);
  if (b.gated) dot_row<E, T>(bundle, b.n_in, x, gate);
#pragma unroll
  for (int t = 0; t < T; ++t) {
    if (lane != 0 || first + t >= b.tokens) continue;
    float value = up[t] + (b.up_bias == nullptr ? 0.0F : b.up_bias[unit.unit]);
    if (b.gated) {
      const float opens = gate[t] + (b.gate_bias == nullptr ? 0.0F : b.gate_bias[unit.unit]);
      value = gated(b.activation, b.threshold, opens, value);
    } else {
      value = activated(b.activation, b.threshold, value);
    }
    b.values[uint64_t{first + t} * b.ldv + k] = value;
  }
}

__global__ void values_of_columns(ColumnValues c) {
  const uint32_t k = blockIdx.x * blockDim.x + threadIdx.x, t = blockIdx.y;
  if (k < c.n_units) c.values[uint64_t{t} * c.ldv + k] = c.x[uint64_t{t} * c.ldx + c.units[k].unit];
}

__global__ void silence(WeightedColumns c, const uint64_t* masks, uint32_t mask_words) {
  const uint32_t k = blockIdx.x * blockDim.x + threadIdx.x, t = blockIdx.y;
  if (k >= c.n_units || mask_has(masks + uint64_t{c.units[k].unit} * mask_words, t)) return;
  c.values[uint64_t{t} * c.ldv + k] = 0;
}

// Loads four values of a column from `first` on, a multiple of 4. Padding follows the last value.
template <Encoding E>
__device__ void four_of_column(const std::byte* column, uint32_t width, uint32_t first, float (&values)[4]) {
  if constexpr (E == Encoding::f32) {
    const float4 four = *reinterpret_cast<const float4*>(column + uint64_t{first} * 4);
    values[0] = four.x, values[1] = four.y, values[2] = four.z, values[3] = four.w;
  } else if constexpr (E == Encoding::f16 || E == Encoding::bf16) {
    const uint2 pairs = load_weights8(column + uint64_t{first} * 2);
    const uint32_t bits[4] = {pairs.x & 0xffff, pairs.x >> 16, pairs.y & 0xffff, pairs.y >> 16};
    for (int i = 0; i < 4; ++i) values[i] = E == Encoding::f16 ? f16_value(bits[i]) : bf16_value(bits[i]);
  } else {
    const uint32_t blocks = (width + kQuantBlock - 1) / kQuantBlock, j = first % kQuantBlock;
    const BlockPlace place = place_in_column(E, blocks, first / kQuantBlock);
    const float scale = f16_value(load_u16(column + place.scale));
    uint32_t words[2];
    load_bytes(column + place.quants + (E == Encoding::q8_0 ? j : j % 16), words, 1);
    for (uint32_t i = 0; i < 4; ++i) {
      if constexpr (E == Encoding::q8_0) {
        values[i] = scale * byte_value(words[0] ^ 0x80808080u, i, 128);
      } else {
        values[i] = scale * byte_value((j < 16 ? words[0] : words[0] >> 4) & 0x0f0f0f0fu, i, 8);
      }
    }
  }
}

// A thread sums four values of the columns of one run, for T tokens.
template <Encoding E, int T>
__global__ void __launch_bounds__(kThreads) sum_runs(WeightedColumns c, const uint32_t* begins,
                                                     uint32_t n_runs, float* partial, uint32_t first_token) {
  const uint32_t first = (blockIdx.x * kThreads + threadIdx.x) * 4, run = blockIdx.y;
  if (first >= c.width) return;
  const uint32_t token = blockIdx.z * T;
  const float* values[T];
#pragma unroll
  for (int t = 0; t < T; ++t)
    values[t] = c.values + uint64_t{first_token + min(token + t, c.tokens - 1)} * c.ldv;
  float sums[T][4];
#pragma unroll
  for (int t = 0; t < T; ++t) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[t][i] = 0;
  }
  const uint32_t begin = begins[run] - begins[0], end = begins[run + 1] - begins[0];
#pragma unroll 8
  for (uint32_t k = begin; k < end; ++k) {
    float weights[4];
    four_of_column<E>(c.memory + c.units[k].place * kPlaceUnit + c.offset, c.width, first, weights);
#pragma unroll
    for (int t = 0; t < T; ++t) {
      const float value = values[t][k];
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[t][i] = __fmaf_rn(value, weights[i], sums[t][i]);
    }
  }
#pragma unroll
  for (int t = 0; t < T; ++t) {
    if (token + t >= c.tokens) break;
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      if (first + i < c.width)
        partial[(uint64_t{token + t} * n_runs + run) * c.width + first + i] = sums[t][i];
    }
  }
}

__global__ void add_runs(const float* partial, uint32_t n_runs, uint32_t width, float* y, uint32_t ldy) {
  const uint32_t c = blockIdx.x * blockDim.x + threadIdx.x, t = blockIdx.y;
  if (c >= width) return;
  float sum = y[uint64_t{t} * ldy + c];
  for (uint32_t run = 0; run < n_runs; ++run) sum += partial[(uint64_t{t} * n_runs + run) * width + c];
  y[uint64_t{t} * ldy + c] = sum;
}

// A warp computes the length of one column, then writes the contributions for all tokens.
template <Encoding E>
__global__ void measure(WeightedColumns c, float* lengths, uint32_t ldl) {
  const uint32_t k = blockIdx.x * kWarps + threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  if (k >= c.n_units) return;
  const Unit unit = c.units[k];
  const std::byte* const column = c.memory + unit.place * kPlaceUnit + c.offset;
  double squares = 0;
  for (uint32_t first = lane * 4; first < c.width; first += kWarp * 4) {
    float values[4];
    four_of_column<E>(column, c.width, first, values);
    for (uint32_t i = 0; i < 4 && first + i < c.width; ++i) squares += double{values[i]} * values[i];
  }
  for (uint32_t i = 1; i < kWarp; i *= 2) squares += __shfl_xor_sync(~0u, squares, i);
  const auto length = static_cast<float>(sqrt(squares));
  for (uint32_t t = lane; t < c.tokens; t += kWarp)
    lengths[uint64_t{t} * ldl + unit.unit] = fabsf(c.values[uint64_t{t} * c.ldv + k]) * length;
}

__global__ void tell(WeightedColumns c, float* lengths, uint32_t ldl) {
  const uint32_t k = blockIdx.x * blockDim.x + threadIdx.x, t = blockIdx.y;
  if (k < c.n_units) lengths[uint64_t{t} * ldl + c.units[k].unit] = fabsf(c.values[uint64_t{t} * c.ldv + k]);
}

}  // namespace

cudaError_t bundle_values(Encoding encoding, const BundleValues& asked, cudaStream_t stream) {
  const auto with_tile = [&](auto kernel, uint32_t tile) {
    const dim3 grid(blocks_for(asked.n_units, kWarps), (asked.tokens + tile - 1) / tile);
    return launch(kernel, grid, dim3(kThreads), stream, asked);
  };
  return for_column_encoding(encoding, [&](auto e) {
    return asked.tokens == 1 ? with_tile(values_of<e(), 1>, 1) : with_tile(values_of<e(), 4>, 4);
  });
}

cudaError_t column_values(const ColumnValues& asked, cudaStream_t stream) {
  const dim3 grid(blocks_for(asked.n_units, kThreads), asked.tokens);
  return launch(values_of_columns, grid, dim3(kThreads), stream, asked);
}

cudaError_t silence_values(const WeightedColumns& columns, const uint64_t* masks, uint32_t mask_words,
                           cudaStream_t stream) {
  const dim3 grid(blocks_for(columns.n_units, kThreads), columns.tokens);
  return launch(silence, grid, dim3(kThreads), stream, columns, masks, mask_words);
}

cudaError_t measure_columns(Encoding encoding, const WeightedColumns& columns, float* lengths, uint32_t ldl,
                            cudaStream_t stream) {
  return for_column_encoding(encoding, [&](auto e) {
    return launch(measure<e()>, dim3(blocks_for(columns.n_units, kWarps)), dim3(kThreads), stream, columns,
                  lengths, ldl);
  });
}

cudaError_t tell_values(const WeightedColumns& columns, float* lengths, uint32_t ldl, cudaStream_t stream) {
  const dim3 grid(blocks_for(columns.n_units, kThreads), columns.tokens);
  return launch(tell, grid, dim3(kThreads), stream, columns, lengths, ldl);
}

cudaError_t add_columns(Encoding encoding, const WeightedColumns& columns, const ColumnRuns& runs, float* y,
                        uint32_t ldy, cudaStream_t stream) {
  for (uint32_t first = 0; first < columns.tokens; first += runs.tokens) {
    WeightedColumns part = columns;
    part.tokens = columns.tokens - first < runs.tokens ? columns.tokens - first : runs.tokens;
    const auto with_tile = [&](auto kernel, uint32_t tile) {
      const dim3 grid(blocks_for(columns.width, kThreads * 4), runs.n_runs, (part.tokens + tile - 1) / tile);
      return launch(kernel, grid, dim3(kThreads), stream, part, runs.begins, runs.n_runs, runs.partial,
                    first);
    };
    cudaError_t error = for_column_encoding(encoding, [&](auto e) {
      return part.tokens == 1 ? with_tile(sum_runs<e(), 1>, 1) : with_tile(sum_runs<e(), 4>, 4);
    });
    if (error != cudaSuccess) return error;
    error = launch(add_runs, dim3(blocks_for(columns.width, kThreads), part.tokens), dim3(kThreads), stream,
                   runs.partial, runs.n_runs, columns.width, y + uint64_t{first} * ldy, ldy);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace tierd::cuda
