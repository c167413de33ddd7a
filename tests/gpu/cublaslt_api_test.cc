// Compares the declarations of tiers/gpu/cuda/cublaslt_api.h with cuBLASLt's own header, where CUDA is
// installed.
#include "tiers/gpu/cuda/cublaslt_api.h"

#include <cublasLt.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "tiers/gpu/cuda/cublaslt.h"

namespace tierd::cuda {
namespace {

static_assert(sizeof(cublaslt::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(cublaslt::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(cublaslt::Heuristic, workspace_bytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(cublaslt::Heuristic, status) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(cublaslt::kSuccess == CUBLAS_STATUS_SUCCESS);
static_assert(cublaslt::kCompute32F == CUBLAS_COMPUTE_32F);
static_assert(cublaslt::kReal32F == CUDA_R_32F && cublaslt::kReal16BF == CUDA_R_16BF);
static_assert(cublaslt::kTransposed == CUBLAS_OP_T && cublaslt::kTransposeA == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(cublaslt::kMostWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(cublaslt::kReductionSchemes == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(cublaslt::kNoReduction == CUBLASLT_REDUCTION_SCHEME_NONE);

// Opaque handles must be pointers in both; enumerations must have the same size.
template <class Ours, class Theirs>
struct PassedAlike : std::bool_constant<sizeof(Ours) == sizeof(Theirs) &&
                                        std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>> {};
template <class Ours, class Theirs>
struct CalledAlike : std::false_type {};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct CalledAlike<R(A...), S(B...)>
    : std::bool_constant<PassedAlike<R, S>::value && (PassedAlike<A, B>::value && ...)> {
};

static_assert(CalledAlike<cublaslt::Create, decltype(cublasLtCreate)>::value);
static_assert(CalledAlike<cublaslt::Destroy, decltype(cublasLtDestroy)>::value);
static_assert(CalledAlike<cublaslt::CreateMatmulDesc, decltype(cublasLtMatmulDescCreate)>::value);
static_assert(CalledAlike<cublaslt::SetMatmulDesc, decltype(cublasLtMatmulDescSetAttribute)>::value);
static_assert(CalledAlike<cublaslt::DestroyMatmulDesc, decltype(cublasLtMatmulDescDestroy)>::value);
static_assert(CalledAlike<cublaslt::CreateLayout, decltype(cublasLtMatrixLayoutCreate)>::value);
static_assert(CalledAlike<cublaslt::DestroyLayout, decltype(cublasLtMatrixLayoutDestroy)>::value);
static_assert(CalledAlike<cublaslt::CreatePreference, decltype(cublasLtMatmulPreferenceCreate)>::value);
static_assert(CalledAlike<cublaslt::SetPreference, decltype(cublasLtMatmulPreferenceSetAttribute)>::value);
static_assert(CalledAlike<cublaslt::DestroyPreference, decltype(cublasLtMatmulPreferenceDestroy)>::value);
static_assert(CalledAlike<cublaslt::GetHeuristic, decltype(cublasLtMatmulAlgoGetHeuristic)>::value);
static_assert(CalledAlike<cublaslt::Check, decltype(cublasLtMatmulAlgoCheck)>::value);
static_assert(CalledAlike<cublaslt::Matmul, decltype(cublasLtMatmul)>::value);

TEST(CublasLt, IsLoadedWhereItIsThere) {
  const auto library = CublasLt::load();
  if (!library.ok()) {
    EXPECT_EQ(library.code(), Code::not_found);
    EXPECT_NE(library.error().line().find("libcublasLt.so.13: cannot be loaded: "), std::string::npos)
        << library.error().line();
    GTEST_SKIP() << library.error().line();
  }
  EXPECT_NE((*library)->matmul, nullptr);
}

}  // namespace
}  // namespace tierd::cuda
