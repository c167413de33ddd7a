// Products of matrices in bf16, added up in f32 by tensor cores. All of one inner width are made by one
// algorithm of cuBLASLt's, chosen once, that splits no sum: so each number of a result is added up in the
// order of the inner width, whatever the other two widths are.
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

  // Errors: those of CublasLt::load; unsupported, where it does not begin on the device that is set;
  // no_space, where the device has no room.
  static Result<std::unique_ptr<Bf16Products>> create();
  Bf16Products(const Bf16Products&) = delete;
  Bf16Products& operator=(const Bf16Products&) = delete;
  ~Bf16Products();

  // c[j][i] = sum over k of a[i][k] * b[j][k], or that is added to it. All are of the device; the lines of a
  // and b have `k` columns, those of c have `m`; m and k are multiples of 16.
  struct Product {
    const uint16_t* a = nullptr;  // [m x k]
    const uint16_t* b = nullptr;  // [n x k]
    float* c = nullptr;           // [n x m]
    uint32_t m = 0;
    uint32_t n = 0;
    uint32_t k = 0;
  };
  // Whether the algorithm of the inner width, which is chosen when it is first asked for, makes products of
  // this size.
  bool makes(uint32_t m, uint32_t n, uint32_t k);
  // Queues it on the stream. `makes` has said that it can.
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
  std::vector<Chosen> chosen_;  // by inner width, of which a model has a few
};

}  // namespace tierd::cuda
