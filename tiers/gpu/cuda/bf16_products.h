// Products of matrices in bf16 with sums in f32, by tensor cores. One algorithm of cuBLASLt, chosen once for
// each inner width, makes all products of that width, and splits no sum: so each number of a result is summed
// in the same order of the inner width, whatever the other two widths are.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tiers/gpu/cuda/buffers.h"
#include "tiers/gpu/cuda/cublaslt.h"

namespace tierd::cuda {

class Bf16Products {
 public:
  static constexpr uint64_t kWorkspaceBytes = 32 << 20;  // of the device

  // Errors: those of CublasLt::load; unsupported, if cuBLASLt cannot start on the current device; no_space,
  // if the device's memory is full.
  static Result<std::unique_ptr<Bf16Products>> create();
  Bf16Products(const Bf16Products&) = delete;
  Bf16Products& operator=(const Bf16Products&) = delete;
  ~Bf16Products();

  // c[j][i] = sum over k of a[i][k] * b[j][k], or that sum is added to c. All matrices are on the device; the
  // lines of a and b have `k` columns, those of c have `m`; m and k are multiples of 16.
  struct Product {
    const uint16_t* a = nullptr;  // [m x k]
    const uint16_t* b = nullptr;  // [n x k]
    float* c = nullptr;           // [n x m]
    uint32_t m = 0;
    uint32_t n = 0;
    uint32_t k = 0;
  };
  // Returns whether the algorithm of this inner width can make products of this size. The first call for a
  // width chooses its algorithm.
  bool makes(uint32_t m, uint32_t n, uint32_t k);
  // Queues the product on the stream. makes() must have returned true.
  cudaError_t multiply(const Product& product, bool add, cudaStream_t stream);
  const std::string& name() const { return library_.name; }

 private:
  struct Layouts;
  explicit Bf16Products(const CublasLt& library) : library_(library) {}
  const cublaslt::Algorithm* algorithm(uint32_t k);

  const CublasLt& library_;
  cublaslt::Handle handle_ = nullptr;
  cublaslt::MatmulDesc desc_ = nullptr;
  cublaslt::Preference preference_ = nullptr;
  DeviceBytes workspace_;
  struct Chosen {
    uint32_t k = 0;
    bool any = false;
    cublaslt::Algorithm algorithm;
  };
  std::vector<Chosen> chosen_;  // by inner width; a model has a few
};

}  // namespace tierd::cuda
