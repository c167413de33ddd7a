// The kernel sets of this build, one per instruction set. Private to tiers/compute.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tiers/compute/kernels.h"

namespace tierd {

// Naive and readable: defines what every other set must compute.
const ComputeKernels& scalar_kernels();

// NULL if this build or this processor cannot run them.
const ComputeKernels* avx2_kernels();
const ComputeKernels* avx512_vnni_kernels();

// The sums for quantize_row's `squares`, in doubles and plain order for every set.
void add_squares(const float* x, uint32_t row, const QuantizedRows& quantized, double* squares);

#if defined(__x86_64__)
namespace avx2 {
void matmul_int8(Encoding e, const std::byte* weights, uint32_t groups, uint32_t cols, const QuantizedRows& x,
                 uint32_t first, uint32_t tokens, float* y, size_t ldy);
const std::byte* expand_bitmap(const Bitmap& bitmap, const std::byte* bits, BitmapValues values,
                               uint64_t elements, std::byte* out);
}  // namespace avx2
namespace avx512_vbmi2 {
const std::byte* expand_bitmap(const Bitmap& bitmap, const std::byte* bits, BitmapValues values,
                               uint64_t elements, std::byte* out);
}
namespace avx512_bitalg {
const std::byte* gemv_bitmap(Encoding e, const std::byte* bits, BitmapValues values, uint32_t groups,
                             uint32_t cols, const float* x, size_t ldx, uint32_t tokens, float* y,
                             size_t ldy);
}
namespace avx512_vnni {
void matmul_int8(Encoding e, const std::byte* weights, uint32_t groups, uint32_t cols, const QuantizedRows& x,
                 uint32_t first, uint32_t tokens, float* y, size_t ldy);
}
#endif

}  // namespace tierd
