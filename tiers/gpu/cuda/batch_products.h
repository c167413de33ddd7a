// Products of row groups for many rows of a batch at once, such as a prompt: weights are unpacked to scratch,
// part by part, and multiplied there by tensor cores (bf16_products.h).
//
// Tensor cores multiply bf16, which has 8 bits of a float's 24. So each number is split into two of bf16, and
// three products are added: high and high, high and low, low and high (two if the weights are bf16 and have
// no low part). This keeps 16 bits of each number; q4_0 and f16 have no more. Sums are f32.
//
// Each inner width has one algorithm, which fixes the order of a sum. So streamed weights give the same bits
// as resident ones, but other bits than our own kernels, which compute smaller batches.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/agent/program.h"
#include "core/base/result.h"
#include "core/model/layout/encoding.h"
#include "tiers/gpu/cuda/bf16_products.h"
#include "tiers/gpu/cuda/buffers.h"
#include "tiers/gpu/cuda/rows.h"

namespace tierd::cuda {

class BatchProducts {
 public:
  // Bytes of unpacked weights that are multiplied at a time.
  static constexpr uint64_t kUnpackedBytes = 64 << 20;

  // For products of `least` rows and more; 0: there are none. device_bytes() returns the device memory that
  // the plan needs here; create() returns NULL if the plan has no batch that large. Errors: those of
  // Bf16Products::create.
  static uint64_t device_bytes(const ComputePlan& plan, uint32_t least);
  static Result<std::unique_ptr<BatchProducts>> create(const ComputePlan& plan, uint32_t least,
                                                       uint64_t unpacked_bytes = kUnpackedBytes);

  // Returns whether this object can compute the product: all tokens use all rows, there are enough tokens,
  // and the encoding has 16 bits or fewer.
  bool makes(Encoding encoding, const RowProduct& product);
  // Same contract as multiply_rows, after makes() has returned true.
  cudaError_t multiply(Encoding encoding, const RowProduct& product, cudaStream_t stream);
  const std::string& name() const { return products_->name(); }

 private:
  explicit BatchProducts(uint32_t least) : least_(least) {}
  uint32_t groups_at_once(uint32_t n_in) const;

  const uint32_t least_;
  uint64_t unpacked_bytes_ = 0;
  std::unique_ptr<Bf16Products> products_;
  DeviceBytes weights_, tokens_, results_;
};

}  // namespace tierd::cuda
