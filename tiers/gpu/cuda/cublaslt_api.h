// The part of NVIDIA's cuBLASLt that this folder uses, as its reference describes it
// (docs.nvidia.com/cuda/cublas, "Using the cuBLASLt API"). The library is loaded at run time if it is present
// and never linked: it has half a gigabyte. Layouts and constants are those of its binary interface, versions
// 12 and 13.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace tierd::cuda::cublaslt {

using Handle = void*;
using MatmulDesc = void*;
using MatrixLayout = void*;
using Preference = void*;

// Opaque. It may be stored, copied, and used for other shapes.
struct Algorithm {
  uint64_t data[8] = {};
};
struct Heuristic {
  Algorithm algorithm = {};
  size_t workspace_bytes = 0;
  int status = 0;
  float waves = 0;
  int reserved[4] = {};
};
static_assert(sizeof(Heuristic) == 96);

inline constexpr int kSuccess = 0;
inline constexpr int kCompute32F = 68;  // CUBLAS_COMPUTE_32F
inline constexpr int kReal32F = 0;      // CUDA_R_32F
inline constexpr int kReal16BF = 14;    // CUDA_R_16BF
inline constexpr int32_t kTransposed = 1;
inline constexpr int kTransposeA = 3;        // attribute of a MatmulDesc, int32_t
inline constexpr int kMostWorkspace = 1;     // attribute of a Preference, uint64_t
inline constexpr int kReductionSchemes = 3;  // attribute of a Preference, uint32_t: a mask; 0: no sum is
                                             // split
inline constexpr uint32_t kNoReduction = 0;

// All return a cublasStatus_t.
using Create = int(Handle*);
using Destroy = int(Handle);
using CreateMatmulDesc = int(MatmulDesc*, int compute, int scale);
using SetMatmulDesc = int(MatmulDesc, int attribute, const void* value, size_t bytes);
using DestroyMatmulDesc = int(MatmulDesc);
using CreateLayout = int(MatrixLayout*, int type, uint64_t rows, uint64_t columns, int64_t ld);
using DestroyLayout = int(MatrixLayout);
using CreatePreference = int(Preference*);
using SetPreference = int(Preference, int attribute, const void* value, size_t bytes);
using DestroyPreference = int(Preference);
using GetHeuristic = int(Handle, MatmulDesc, MatrixLayout a, MatrixLayout b, MatrixLayout c, MatrixLayout d,
                         Preference, int most, Heuristic* found, int* n_found);
using Check = int(Handle, MatmulDesc, MatrixLayout a, MatrixLayout b, MatrixLayout c, MatrixLayout d,
                  const Algorithm*, Heuristic* result);
using Matmul = int(Handle, MatmulDesc, const void* alpha, const void* a, MatrixLayout of_a, const void* b,
                   MatrixLayout of_b, const void* beta, const void* c, MatrixLayout of_c, void* d,
                   MatrixLayout of_d, const Algorithm*, void* workspace, size_t workspace_bytes,
                   cudaStream_t);

}  // namespace tierd::cuda::cublaslt
