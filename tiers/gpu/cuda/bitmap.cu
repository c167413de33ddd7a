#include "tiers/gpu/cuda/bitmap.h"

#include "tiers/gpu/cuda/bitmap_kernel.cuh"
#include "tiers/gpu/cuda/launch.h"

namespace tierd::cuda {
namespace {

constexpr uint32_t kThreads = kSegmentTiles;
constexpr uint32_t kWarps = kThreads / kWarp;

// Counts the bits that are set in `bytes` bytes at a multiple of 4; the load of the last word may exceed
// them.
__device__ uint32_t count_bits(const std::byte* bits, uint32_t bytes) {
  const auto* const words = reinterpret_cast<const uint32_t*>(bits);
  uint32_t count = 0, i = 0;
  for (; i + 4 <= bytes; i += 4) count += __popc(words[i / 4]);
  if (i < bytes) count += __popc(words[i / 4] & ((1u << 8 * (bytes - i)) - 1));
  return count;
}

// Returns the sum over the threads before this one, and the sum over all.
__device__ SumOfLanes sum_of_block(uint32_t value) {
  __shared__ uint32_t of_warp[kWarps];
  const uint32_t warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const SumOfLanes own = sum_of_lanes(value, lane);
  if (lane == 0) of_warp[warp] = own.all;
  __syncthreads();
  SumOfLanes sum{own.before, 0};
  for (uint32_t w = 0; w < kWarps; ++w) {
    if (w < warp) sum.before += of_warp[w];
    sum.all += of_warp[w];
  }
  __syncthreads();
  return sum;
}

// Called by one thread, once all values of the unit are counted.
__device__ void check_unit(const BitmapUnits& b, const NeuronSize& size, uint64_t values,
                           uint32_t* segments) {
  if (size.bits + values * b.bitmap.element_bytes == size.bytes) return;
  segments[0] = kMalformed;
  *b.malformed = 1;
}

// A block counts one segment of one unit, each thread one tile.
__global__ void __launch_bounds__(kThreads) count(BitmapUnits b) {
  const uint32_t number = blockIdx.x / b.segments(), segment = blockIdx.x % b.segments();
  const Unit unit = b.units[number];
  const NeuronSize size = b.sizes[unit.unit];
  const uint32_t tile = segment * kSegmentTiles + threadIdx.x;
  const uint64_t at = uint64_t{tile} * b.tile;
  uint32_t values = 0;
  if (at < size.bits) {
    const uint64_t left = size.bits - at;
    values = count_bits(b.memory + unit.place * kPlaceUnit + at, left < b.tile ? left : b.tile);
  }
  const SumOfLanes sum = sum_of_block(values);
  uint32_t* const counts = b.counts + b.counts_at(number);
  if (tile < b.tiles) counts[tile] = sum.before;
  if (threadIdx.x != 0) return;
  counts[b.tiles + segment] = b.segments() == 1 ? 0 : sum.all;
  if (b.segments() == 1) check_unit(b, size, sum.all, counts + b.tiles);
}

// A block adds the segments of a unit that has several.
__global__ void __launch_bounds__(kThreads) add_segments(BitmapUnits b) {
  uint32_t* const segments = b.counts + b.counts_at(blockIdx.x) + b.tiles;
  uint64_t before = 0;
  for (uint32_t first = 0; first < b.segments(); first += kThreads) {
    const uint32_t segment = first + threadIdx.x;
    const SumOfLanes sum = sum_of_block(segment < b.segments() ? segments[segment] : 0);
    if (segment < b.segments()) segments[segment] = static_cast<uint32_t>(before + sum.before);
    before += sum.all;
  }
  if (threadIdx.x == 0) check_unit(b, b.sizes[b.units[blockIdx.x].unit], before, segments);
}

// Adds the count before its segment to each tile's count, which began at 0 in the segment.
__global__ void __launch_bounds__(kThreads) shift_tiles(BitmapUnits b) {
  const uint32_t segments = b.segments() - 1;  // the tiles of segment 0 are right already
  const uint32_t number = blockIdx.x / segments, segment = 1 + blockIdx.x % segments;
  uint32_t* const counts = b.counts + b.counts_at(number);
  const uint32_t tile = segment * kSegmentTiles + threadIdx.x;
  if (tile < b.tiles) counts[tile] += counts[b.tiles + segment];
}

constexpr int kAhead = 4;                          // tiles that a warp reads together
constexpr uint32_t kBlockTiles = kWarps * kAhead;  // of a block
constexpr uint32_t kTileDense = 512;               // dense bytes of a tile

template <uint32_t kElement>
__device__ uint32_t bits_of_lane(const std::byte* bits, uint32_t lane, bool there) {
  if constexpr (kElement == 1) return load_bits_if<2>(bits + lane * 2, there);
  if constexpr (kElement == 2) return load_bits_if<1>(bits + lane, there);
  return load_bits_if<1>(bits + lane / 2, there) >> lane % 2 * 4 & 15;
}

// A block expands 16 KiB of a unit.
template <uint32_t kElement>
__global__ void __launch_bounds__(kThreads) expand(BitmapUnits b, ExpandedUnits to, uint32_t blocks_of_unit) {
  __shared__ Spread<kElement> spread[16];
  fill_spread(spread);
  __syncthreads();
  const uint32_t number = blockIdx.x / blocks_of_unit, part = blockIdx.x % blocks_of_unit;
  const Unit unit = b.units[number];
  uint64_t dense = to.dense_bytes, at = number * to.dense_bytes;
  if (to.places != nullptr) {
    dense = uint64_t{b.sizes[unit.unit].bits} * 8 * kElement;
    at = to.places[number].place * kPlaceUnit;
  } else if (part == 0 && threadIdx.x == 0) {
    to.units[number] = {unit.unit, static_cast<uint32_t>(at / kPlaceUnit)};
  }
  const uint32_t* const counts = b.counts + b.counts_at(number);
  if (counts[b.tiles] == kMalformed) return;

  const uint32_t warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const std::byte* const bits = b.memory + unit.place * kPlaceUnit;
  const Values values = Values::at(bits + b.sizes[unit.unit].bits);
  std::byte* const out = to.memory + at;
  uint32_t masks[kAhead], set[kAhead], before[kAhead], in_lane[kAhead];
#pragma unroll
  for (uint32_t i = 0; i < kAhead; ++i) {
    const uint32_t tile = part * kBlockTiles + i * kWarps + warp;
    const bool there = uint64_t{tile} * kTileDense + lane * 16 < dense;
    masks[i] = bits_of_lane<kElement>(bits + uint64_t{tile} * b.tile, lane, there);
    before[i] = load_word_if(counts + tile, there);
    set[i] = __popc(masks[i]);
  }
  sums_before_lane<kElement == 1 ? 16 : 8>(set, lane, in_lane);
  const uint32_t zeros = static_cast<uint32_t>(b.bitmap.zero) * 0x01010101u;
  uint4 words[kAhead];
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    words[i] = expand16(spread, masks[i], values, (before[i] + in_lane[i]) * kElement, zeros);
  }
#pragma unroll
  for (uint32_t i = 0; i < kAhead; ++i) {
    const uint64_t first = (uint64_t{part} * kBlockTiles + i * kWarps + warp) * kTileDense + lane * 16;
    if (first < dense) *reinterpret_cast<uint4*>(out + first) = words[i];
  }
}

}  // namespace

cudaError_t count_bitmaps(const BitmapUnits& units, cudaStream_t stream) {
  cudaError_t error = launch(count, dim3(units.n_units * units.segments()), dim3(kThreads), stream, units);
  if (error != cudaSuccess || units.segments() == 1) return error;
  error = launch(add_segments, dim3(units.n_units), dim3(kThreads), stream, units);
  if (error != cudaSuccess) return error;
  return launch(shift_tiles, dim3(units.n_units * (units.segments() - 1)), dim3(kThreads), stream, units);
}

cudaError_t expand_bitmaps(const BitmapUnits& units, const ExpandedUnits& expanded, cudaStream_t stream) {
  const uint32_t blocks = blocks_for(expanded.dense_bytes, kTileDense * kBlockTiles);
  const auto with = [&](auto kernel) {
    return launch(kernel, dim3(units.n_units * blocks), dim3(kThreads), stream, units, expanded, blocks);
  };
  if (units.bitmap.element_bytes == 1) return with(expand<1>);
  return units.bitmap.element_bytes == 2 ? with(expand<2>) : with(expand<4>);
}

}  // namespace tierd::cuda
