// The SIMD kernel sets, compiled once for AVX2 and once for AVX-512 by Highway's foreach_target.
#include <cstdint>

#include "tiers/compute/kernel_sets.h"

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tiers/compute/simd.cc"
#include "hwy/foreach_target.h"
// The order matters: Highway's headers are compiled for the target chosen above.
#include "hwy/highway.h"

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#include "tiers/compute/activations-inl.h"
#include "tiers/compute/attention-inl.h"
#include "tiers/compute/columns-inl.h"
#include "tiers/compute/matmul-inl.h"
#include "tiers/compute/neurons-inl.h"
#include "tiers/compute/recode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tierd {
namespace HWY_NAMESPACE {

// Sets all kernels except the name and the kernels that need extensions beyond the target.
constexpr ComputeKernels float_kernels() {
  ComputeKernels kernels{};
  kernels.matmul = matmul;
  kernels.dots = dots;
  kernels.add_weighted = add_weighted;
  kernels.add_weighted_int8 = add_weighted_int8<avx2::Columns>;
  kernels.quantize_row = quantize_row;
  kernels.encode_blocks = encode_blocks;
  kernels.rms_norm = rms_norm;
  kernels.layer_norm = layer_norm;
  kernels.add = add;
  kernels.activate = activate;
  kernels.f32_to_f16 = f32_to_f16;
  kernels.attend_f16 = attend<uint16_t>;
  kernels.attend_f32 = attend<float>;
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace tierd
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace tierd {

const ComputeKernels* avx2_kernels() {
#if HWY_TARGETS & HWY_AVX2
  static constexpr ComputeKernels kKernels = [] {
    ComputeKernels kernels = N_AVX2::float_kernels();
    kernels.name = "avx2";
    kernels.expand_bitmap = avx2::expand_bitmap;
    kernels.gemv_bitmap = [](auto... rest) { return N_AVX2::gemv_bitmap(avx2::expand_bitmap, rest...); };
    kernels.matmul_int8 = avx2::matmul_int8;
    return kernels;
  }();
  if ((hwy::SupportedTargets() & HWY_AVX2) != 0) return &kKernels;
#endif
  return nullptr;
}

const ComputeKernels* avx512_vnni_kernels() {
#if HWY_TARGETS & HWY_AVX3
  static const ComputeKernels kKernels = [] {
    ComputeKernels kernels = N_AVX3::float_kernels();
    kernels.name = "avx512-vnni";
    kernels.matmul_int8 = avx512_vnni::matmul_int8;
    kernels.add_weighted_int8 = N_AVX3::add_weighted_int8<avx512_vnni::Columns>;
    kernels.expand_bitmap = avx2::expand_bitmap;
    kernels.gemv_bitmap = [](auto... rest) { return N_AVX3::gemv_bitmap(avx2::expand_bitmap, rest...); };
    // Processors before Ice Lake have VNNI, but neither VBMI2 nor the population counts of vectors.
    if (__builtin_cpu_supports("avx512vbmi2") != 0 && __builtin_cpu_supports("avx512bitalg") != 0 &&
        __builtin_cpu_supports("avx512vpopcntdq") != 0) {
      kernels.expand_bitmap = avx512_vbmi2::expand_bitmap;
      kernels.gemv_bitmap = [](Encoding e, auto... rest) {
        if (is_quantized(e)) return N_AVX3::gemv_bitmap(avx512_vbmi2::expand_bitmap, e, rest...);
        return avx512_bitalg::gemv_bitmap(e, rest...);
      };
    }
    return kernels;
  }();
  if ((hwy::SupportedTargets() & HWY_AVX3) != 0 && __builtin_cpu_supports("avx512vnni") != 0)
    return &kKernels;
#endif
  return nullptr;
}

}  // namespace tierd
#endif
