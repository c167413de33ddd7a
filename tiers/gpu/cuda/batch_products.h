// Products of row groups for many rows of a batch at once, such as a prompt's: weights are unpacked to
// scratch, part by part, and multiplied there by tensor cores (bf16_products.h).
//
// Tensor cores multiply bf16, which has 8 bits of a float's 24. So each number is taken apart in two of bf16,
// and three products are added up: high and high, high and low, low and high (two where weights are bf16 and
// leave no low). 16 bits of each number count then; q4_0 and f16 have no more. Sums are made in f32.
//
// The order of a sum is that of the one algorithm which the inner width has. So what is streamed equals what
// is resident, bit for bit, but the bits are not those of our own kernels, which take fewer rows.
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
  // Unpacked weights of so many bytes are multiplied at a time.
  static constexpr uint64_t kUnpackedBytes = 64 << 20;

  // For products of `least` rows and more; 0: there are none. What it takes of the device for the plan, and
  // the products; none where the plan has no batch that large. Errors: those of Bf16Products::create.
  static uint64_t device_bytes(const ComputePlan& plan, uint32_t least);
  static Result<std::unique_ptr<BatchProducts>> create(const ComputePlan& plan, uint32_t least,
                                                       uint64_t unpacked_bytes = kUnpackedBytes);

  // Whether it makes this product: all tokens use all rows, enough of them, in an encoding of 16 bits or
  // fewer.
  bool makes(Encoding encoding, const RowProduct& product);
  // As multiply_rows; `makes` has said so.
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
