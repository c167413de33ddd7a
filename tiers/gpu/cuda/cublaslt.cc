#include "tiers/gpu/cuda/cublaslt.h"

#include "tiers/gpu/cuda/loaded_library.h"

namespace tierd::cuda {
namespace {

constexpr const char* kLibraries[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

Result<CublasLt> load_any() {
  std::string why;
  for (const char* const name : kLibraries) {
    void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      if (why.empty()) why = why_not_loaded();
      continue;
    }
    CublasLt lt;
    lt.name = std::string("cuBLASLt (") + name + ")";
    if (find_function(library, "cublasLtCreate", lt.create) &&
        find_function(library, "cublasLtDestroy", lt.destroy) &&
        find_function(library, "cublasLtMatmulDescCreate", lt.create_desc) &&
        find_function(library, "cublasLtMatmulDescSetAttribute", lt.set_desc) &&
        find_function(library, "cublasLtMatmulDescDestroy", lt.destroy_desc) &&
        find_function(library, "cublasLtMatrixLayoutCreate", lt.create_layout) &&
        find_function(library, "cublasLtMatrixLayoutDestroy", lt.destroy_layout) &&
        find_function(library, "cublasLtMatmulPreferenceCreate", lt.create_preference) &&
        find_function(library, "cublasLtMatmulPreferenceSetAttribute", lt.set_preference) &&
        find_function(library, "cublasLtMatmulPreferenceDestroy", lt.destroy_preference) &&
        find_function(library, "cublasLtMatmulAlgoGetHeuristic", lt.get_heuristic) &&
        find_function(library, "cublasLtMatmulAlgoCheck", lt.check) &&
        find_function(library, "cublasLtMatmul", lt.matmul))
      return lt;
    return Error{Code::not_found, name, "lacks a function of cuBLASLt that is needed"};
  }
  return Error{Code::not_found, kLibraries[0], "cannot be loaded: " + why};
}

}  // namespace

Result<const CublasLt*> CublasLt::load() {
  static const Result<CublasLt> loaded = load_any();
  if (!loaded.ok()) return loaded.error();
  return &*loaded;
}

}  // namespace tierd::cuda
