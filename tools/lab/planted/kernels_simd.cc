// Compiled once for AVX2 and once for AVX-512 by Highway's foreach_target.
#include <algorithm>
#include <cstring>

#include "tools/lab/planted/kernels.h"

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/lab/planted/kernels_simd.cc"
#include "hwy/foreach_target.h"
// The order matters: Highway's headers are compiled for the target chosen above.
#include "hwy/highway.h"

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace tierd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::Rebind<uint32_t, F32>;
using I32 = hn::Rebind<int32_t, F32>;
using U16 = hn::Repartition<uint16_t, U32>;
using HalfU16 = hn::Rebind<uint16_t, F32>;
using HalfF16 = hn::Rebind<hwy::float16_t, F32>;
using Floats = hn::Vec<F32>;
using Words = hn::Vec<U32>;

inline constexpr uint32_t kLanes = hn::MaxLanes(F32());
// As many sums as fit into the registers beside the factors.
inline constexpr uint32_t kTileRows = HWY_TARGET == HWY_AVX3 ? 8 : 4;

HWY_INLINE Words mix32(Words x) {
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(U32(), 0x7feb352du));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(U32(), 0x846ca68bu));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}

HWY_INLINE void add_halves(hn::Vec<HalfU16> halves, Floats step, float* out) {
  const Floats number = hn::ConvertTo(F32(), hn::BitCast(I32(), hn::PromoteTo(U32(), halves)));
  const Floats centred = hn::Sub(number, hn::Set(F32(), 32767.5f));
  hn::StoreU(hn::MulAdd(centred, step, hn::LoadU(F32(), out)), F32(), out);
}

void add_uniform(RandomKey key, uint32_t first, float step, std::span<float> out) {
  constexpr uint32_t kNumbers = 2 * kLanes;
  const auto scalar = scalar_planted_kernels().add_uniform;
  size_t done = std::min<size_t>(first % 2, out.size());  // first number is the upper half of its word
  scalar(key, first, step, out.first(done));
  const Floats steps = hn::Set(F32(), step);
  const Words a = hn::Set(U32(), key.a);
  const Words b = hn::Set(U32(), key.b);
  for (; done + kNumbers <= out.size(); done += kNumbers) {
    const Words counters = hn::Iota(U32(), static_cast<uint32_t>((first + done) / 2));
    const auto halves = hn::BitCast(U16(), mix32(hn::Add(mix32(hn::Add(counters, a)), b)));
    add_halves(hn::LowerHalf(HalfU16(), halves), steps, out.data() + done);
    add_halves(hn::UpperHalf(HalfU16(), halves), steps, out.data() + done + kLanes);
  }
  scalar(key, static_cast<uint32_t>(first + done), step, out.subspan(done));
}

// Computes [kRows x 32] of the product, from one panel.
template <uint32_t kRows>
HWY_INLINE void multiply_tile(const float* left, uint32_t depth, const float* panel, float* tile) {
  for (uint32_t col = 0; col < kPanelCols; col += 2 * kLanes) {
    Floats sums[kRows][2];
#pragma GCC unroll 8
    for (uint32_t row = 0; row < kRows; ++row) sums[row][0] = sums[row][1] = hn::Zero(F32());
    const float* right = panel + col;
    for (uint32_t k = 0; k < depth; ++k, right += kPanelCols) {
      const Floats right0 = hn::LoadU(F32(), right);
      const Floats right1 = hn::LoadU(F32(), right + kLanes);
#pragma GCC unroll 8
      for (uint32_t row = 0; row < kRows; ++row) {
        const Floats value = hn::Set(F32(), left[row * depth + k]);
        sums[row][0] = hn::MulAdd(value, right0, sums[row][0]);
        sums[row][1] = hn::MulAdd(value, right1, sums[row][1]);
      }
    }
#pragma GCC unroll 8
    for (uint32_t row = 0; row < kRows; ++row) {
      hn::StoreU(sums[row][0], F32(), tile + row * kPanelCols + col);
      hn::StoreU(sums[row][1], F32(), tile + row * kPanelCols + col + kLanes);
    }
  }
}

void multiply(const float* left, uint32_t rows, const PackedMatrix& right, float* out) {
  const uint32_t depth = right.depth();
  const uint64_t cols = right.cols();
  float tile[kTileRows * kPanelCols];
  for (uint32_t col = 0; col < cols; col += kPanelCols) {
    const float* panel = right.panel(col);
    const uint64_t count = std::min<uint64_t>(kPanelCols, cols - col);
    for (uint32_t row = 0; row < rows;) {
      const float* from = left + uint64_t{row} * depth;
      const uint32_t tile_rows = rows - row >= kTileRows ? kTileRows : 1;
      if (tile_rows == kTileRows) {
        multiply_tile<kTileRows>(from, depth, panel, tile);
      } else {
        multiply_tile<1>(from, depth, panel, tile);
      }
      for (uint32_t i = 0; i < tile_rows; ++i, ++row)
        std::memcpy(out + row * cols + col, tile + i * kPanelCols, count * sizeof(float));
    }
  }
}

void to_f16(std::span<const float> in, uint16_t* out) {
  size_t done = 0;
  for (; done + kLanes <= in.size(); done += kLanes) {
    const auto halves = hn::DemoteTo(HalfF16(), hn::LoadU(F32(), in.data() + done));
    hn::StoreU(hn::BitCast(HalfU16(), halves), HalfU16(), out + done);
  }
  scalar_planted_kernels().to_f16(in.subspan(done), out + done);
}

constexpr PlantedKernels kernels() {
  return {add_uniform, multiply, to_f16};
}

}  // namespace HWY_NAMESPACE
}  // namespace tierd
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace tierd {

const PlantedKernels& planted_kernels() {
  static const PlantedKernels kernels = [] {
#if HWY_TARGETS & HWY_AVX3
    if ((hwy::SupportedTargets() & HWY_AVX3) != 0) return N_AVX3::kernels();
#endif
#if HWY_TARGETS & HWY_AVX2
    if ((hwy::SupportedTargets() & HWY_AVX2) != 0) return N_AVX2::kernels();
#endif
    return scalar_planted_kernels();
  }();
  return kernels;
}

}  // namespace tierd
#endif
