// cuBLASLt: products of matrices by tensor cores.
#pragma once

#include <string>

#include "core/base/result.h"
#include "tiers/gpu/cuda/cublaslt_api.h"

namespace tierd::cuda {

// The functions of the library.
struct CublasLt {
  std::string name;  // "cuBLASLt" and its library's file
  cublaslt::Create* create = nullptr;
  cublaslt::Destroy* destroy = nullptr;
  cublaslt::CreateMatmulDesc* create_desc = nullptr;
  cublaslt::SetMatmulDesc* set_desc = nullptr;
  cublaslt::DestroyMatmulDesc* destroy_desc = nullptr;
  cublaslt::CreateLayout* create_layout = nullptr;
  cublaslt::DestroyLayout* destroy_layout = nullptr;
  cublaslt::CreatePreference* create_preference = nullptr;
  cublaslt::SetPreference* set_preference = nullptr;
  cublaslt::DestroyPreference* destroy_preference = nullptr;
  cublaslt::GetHeuristic* get_heuristic = nullptr;
  cublaslt::Check* check = nullptr;
  cublaslt::Matmul* matmul = nullptr;

  // Loads the library once; it stays loaded. Error: not_found, naming the library, if no version can be
  // loaded or a function is missing.
  static Result<const CublasLt*> load();
};

}  // namespace tierd::cuda
