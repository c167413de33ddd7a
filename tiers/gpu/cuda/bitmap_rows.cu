// Products with row groups that are stored as bitmaps, and the gather from such an embedding: a warp expands
// each step to the packet that the dense kernel would have read, so that a row's bits are the same.
#include "tiers/gpu/cuda/bitmap_kernel.cuh"
#include "tiers/gpu/cuda/encoded.h"
#include "tiers/gpu/cuda/rows.h"
#include "tiers/gpu/cuda/rows_block.cuh"
#include "tiers/gpu/cuda/rows_kernel.cuh"

namespace tierd::cuda {
namespace {

// A lane's share of a step, read before its values: the bits of its elements and, for q8_0, of the block's
// scales; the number of values before the step. No field is used where it is read, so that reads of several
// steps overlap. Past the end the bits are 0.
struct LaneBits {
  uint32_t mask;
  uint32_t scales;
  uint32_t before;
};

template <Encoding E>
struct BitmapReader {
  static constexpr uint32_t kElement = E == Encoding::f32 ? 4 : 2;
  static constexpr int kAhead = 4;
  static constexpr int kFieldBits = 8;  // bits of a sum over 31 lanes
  static constexpr uint32_t kTile = 64 / kElement;
  using Reader = StepReader<E>;
  __device__ static uint32_t column(uint32_t step, uint32_t lane) {
    return step * Reader::kColumns + lane / (kWarp / Reader::kColumns);
  }
  __device__ static bool there(uint32_t step, uint32_t lane, uint32_t n_in) {
    return column(step, lane) < n_in;
  }
  // `bits`: the first byte of the step's bits.
  __device__ static void read(const std::byte* bits, uint32_t lane, bool there, LaneBits& out) {
    out.mask = load_bits_if<1>(bits + lane * kTile / kWarp, there);
    if constexpr (E == Encoding::f32) out.mask = out.mask >> lane % 2 * 4 & 15;
  }
  // `at`: the index of the step's first value in the unit.
  __device__ static typename Reader::Packet packet(const Spread<kElement> (&spread)[16], const LaneBits& bits,
                                                   const Values& values, uint32_t at, uint32_t in_step,
                                                   uint32_t step, uint32_t lane, uint32_t n_in) {
    typename Reader::Packet packet;
    packet.column = column(step, lane);
    packet.there = packet.column < n_in;
    packet.words = expand16(spread, bits.mask, values, (at + in_step) * kElement, 0);
    return packet;
  }
};
template <>
struct BitmapReader<Encoding::q8_0> {
  static constexpr uint32_t kElement = 1;
  static constexpr int kAhead = 2;
  static constexpr int kFieldBits = 16;
  static constexpr uint32_t kTile = 68;
  static constexpr uint32_t kZeros = 0x80808080u;
  using Reader = StepReader<Encoding::q8_0>;
  __device__ static bool there(uint32_t step, uint32_t, uint32_t n_in) { return step * kQuantBlock < n_in; }
  __device__ static void read(const std::byte* bits, uint32_t lane, bool there, LaneBits& out) {
    out.scales = load_bits_if<4>(bits, there);
    out.mask = load_bits_if<2>(bits + 4 + lane * 2, there);
  }
  __device__ static typename Reader::Packet packet(const Spread<1> (&spread)[16], const LaneBits& bits,
                                                   const Values& values, uint32_t at, uint32_t in_step,
                                                   uint32_t step, uint32_t lane, uint32_t) {
    typename Reader::Packet packet;
    packet.column = step * kQuantBlock + lane / 4 * 4;
    const uint32_t of_lane = lane % 4 * 8;  // the first scale of this lane
    uint32_t scales[2];
    // Most blocks have all scales, and the branch is the same for the whole warp.
    if (bits.scales == ~0u) {
      load_unaligned(values, at + of_lane, 8, scales);
    } else {
      expand_bytes(spread, bits.scales >> of_lane & 0xff, values,
                   at + __popc(bits.scales & ((1u << of_lane) - 1)), kZeros, scales);
    }
    packet.scales = {scales[0], scales[1]};
    packet.words = expand16(spread, bits.mask, values, at + __popc(bits.scales) + in_step, kZeros);
    return packet;
  }
};

// The position of a warp in a unit's bits; its steps are kRowWarps apart.
template <Encoding E>
struct StepBits {
  const std::byte* bits;   // of the next step
  const uint32_t* before;  // the count of its tile
  uint32_t skew;           // bytes of the tile that belong to the previous step; the same for all steps

  template <int N>
  __device__ void read(uint32_t step, uint32_t lane, uint32_t n_in, LaneBits (&out)[N]) {
    using Bits = BitmapReader<E>;
#pragma unroll
    for (uint32_t i = 0; i < N; ++i) {
      const bool there = Bits::there(step + i * kRowWarps, lane, n_in);
      Bits::read(bits + i * kRowWarps * Bits::kTile, lane, there, out[i]);
      out[i].before = load_word_if(before + i * kRowWarps, there);
    }
    if (skew != 0) {
#pragma unroll
      for (uint32_t i = 0; i < N; ++i) {
        const bool there = Bits::there(step + i * kRowWarps, 0, n_in);
        const std::byte* const tile = bits + i * kRowWarps * Bits::kTile - skew;
        uint32_t set = __popc(load_bits_if<2>(tile + lane * 2, there && lane * 2 < skew));
        if constexpr (Bits::kTile > kWarp * 2) {
          const uint32_t more = (kWarp + lane) * 2;
          set += __popc(load_bits_if<2>(tile + more, there && more < skew));
        }
        out[i].before += sum_of_lanes(set, lane).all;
      }
    }
    bits += N * kRowWarps * Bits::kTile;
    before += N * kRowWarps;
  }
};

template <Encoding E, int T>
__global__ void __launch_bounds__(kRowWarps* kWarp) multiply_bitmap(RowProduct p, BitmapUnits b) {
  using Reader = StepReader<E>;
  using Bits = BitmapReader<E>;
  constexpr int kAhead = T == 1 ? Bits::kAhead : 1;
  RowBlock<T> block;
  if (!find_block(p, block)) return;
  const uint32_t* const counts = b.counts + b.counts_at(block.number);
  if (counts[b.tiles] == kMalformed) return;
  __shared__ Spread<Bits::kElement> spread[16];
  fill_spread(spread);
  __syncthreads();
  float sums[Reader::kRows][T];
  clear_sums(sums);

  const uint32_t warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const std::byte* const unit = b.memory + block.unit.place * kPlaceUnit;
  const uint64_t first = (p.offset + block.group * group_bytes(E, p.n_in)) / (8 * Bits::kElement);
  const Values values = Values::at(unit + b.sizes[block.unit.unit].bits);
  StepBits<E> at{unit + first + warp * Bits::kTile, counts + first / Bits::kTile + warp,
                 static_cast<uint32_t>(first % Bits::kTile)};
  const uint32_t steps = (p.n_in + Reader::kColumns - 1) / Reader::kColumns;
  // Bits are read one round ahead of their values.
  LaneBits bits[kAhead], next[kAhead];
  at.read(warp, lane, p.n_in, bits);
  for (uint32_t step = warp; step < steps; step += kAhead * kRowWarps) {
    at.read(step + kAhead * kRowWarps, lane, p.n_in, next);
    uint32_t set[kAhead], in_step[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) set[i] = __popc(bits[i].mask);
    sums_before_lane<Bits::kFieldBits>(set, lane, in_step);
    typename Reader::Packet packets[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      packets[i] = Bits::packet(spread, bits[i], values, bits[i].before, in_step[i], step + i * kRowWarps,
                                lane, p.n_in);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (Bits::there(step + i * kRowWarps, lane, p.n_in)) Reader::add(packets[i], lane, block.x, sums);
      bits[i] = next[i];
    }
  }
  write_sums(p, block, sums);
}

// Returns one element of a unit; called by one thread.
template <uint32_t kElement>
__device__ uint32_t element_of(const BitmapUnits& b, const std::byte* unit, uint32_t bits_bytes,
                               const uint32_t* counts, uint64_t element) {
  const auto tile = static_cast<uint32_t>(element / 8 / b.tile);
  const auto in_tile = static_cast<uint32_t>(element - uint64_t{tile} * b.tile * 8);
  const auto* const words = reinterpret_cast<const uint32_t*>(unit + uint64_t{tile} * b.tile);
  const uint32_t last = in_tile / 32, bit = in_tile % 32;
  if ((words[last] >> bit & 1) == 0) return kElement == 1 ? static_cast<uint32_t>(b.bitmap.zero) : 0;
  uint32_t before = counts[tile];
  for (uint32_t i = 0; i < last; ++i) before += __popc(words[i]);
  before += __popc(words[last] & ((1u << bit) - 1));
  const std::byte* const value = unit + bits_bytes + uint64_t{before} * kElement;
  if constexpr (kElement == 1) return static_cast<uint32_t>(*value);
  if constexpr (kElement == 2) return load_u16(value);
  return load_u16(value) | load_u16(value + 2) << 16;
}

template <Encoding E>
__global__ void gather_bitmap(RowGather g, BitmapUnits b) {
  constexpr uint32_t kElement = BitmapReader<E>::kElement;
  const uint32_t c = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  if (c >= g.n_in) return;
  const uint32_t token = g.rows[i].token;
  for (uint32_t u = 0; u < g.n_units; ++u) {
    const Unit unit = g.units[u];
    if (token / g.rows_of_unit != unit.unit) continue;
    const uint32_t* const counts = b.counts + b.counts_at(u);
    if (counts[b.tiles] == kMalformed) continue;
    const uint32_t in_unit = token % g.rows_of_unit, row = in_unit % kGroupRows;
    const uint64_t first = in_unit / kGroupRows * group_bytes(E, g.n_in) / kElement;
    const auto element = [&](uint64_t number) {
      return element_of<kElement>(b, b.memory + unit.place * kPlaceUnit, b.sizes[unit.unit].bits, counts,
                                  first + number);
    };
    float value;
    if constexpr (E == Encoding::q8_0) {
      const uint64_t block = c / kQuantBlock * uint64_t{kGroupRows * block_bytes(E)};
      const uint32_t j = c % kQuantBlock;
      const float scale = f16_value(element(block + row * 2) | element(block + row * 2 + 1) << 8);
      value = scale * byte_value(element(block + 32 + (j / 4 * kGroupRows + row) * 4 + j % 4), 0, 128);
    } else {
      const uint32_t bits = element(uint64_t{c} * kGroupRows + row);
      value = E == Encoding::f32   ? __uint_as_float(bits)
              : E == Encoding::f16 ? f16_value(bits)
                                   : bf16_value(bits);
    }
    g.out[uint64_t{i} * g.ldo + c] = value;
  }
}

// Calls `call` for an encoding that has bitmaps.
template <class Call>
cudaError_t for_bitmap_encoding(Encoding encoding, const Call& call) {
  if (encoding == Encoding::f32) return call(EncodingConstant<Encoding::f32>());
  if (encoding == Encoding::f16) return call(EncodingConstant<Encoding::f16>());
  if (encoding == Encoding::bf16) return call(EncodingConstant<Encoding::bf16>());
  if (encoding == Encoding::q8_0) return call(EncodingConstant<Encoding::q8_0>());
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t multiply_bitmap_rows(Encoding encoding, const RowProduct& product, const BitmapUnits& units,
                                 cudaStream_t stream) {
  return for_bitmap_encoding(encoding, [&](auto e) {
    if (product.tokens == 1) return launch_rows(multiply_bitmap<e(), 1>, 1, stream, product, units);
    if (product.tokens <= 4) return launch_rows(multiply_bitmap<e(), 4>, 4, stream, product, units);
    return launch_rows(multiply_bitmap<e(), 8>, 8, stream, product, units);
  });
}

cudaError_t gather_bitmap_rows(Encoding encoding, const RowGather& what, const BitmapUnits& units,
                               cudaStream_t stream) {
  constexpr unsigned kThreads = 256;
  const dim3 grid(blocks_for(what.n_in, kThreads), what.n_rows);
  return for_bitmap_encoding(encoding, [&](auto e) {
    return launch(gather_bitmap<e()>, grid, dim3(kThreads), stream, what, units);
  });
}

}  // namespace tierd::cuda
