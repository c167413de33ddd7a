// Conversions around tensor cores: row groups of weights and activations become lines of numbers, each the
// sum of two of bf16; results go to the places of their rows.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/model/layout/encoding.h"
#include "tiers/gpu/cuda/rows.h"

namespace tierd::cuda {

// Lines of `ld` numbers each; the padding behind a line's own numbers is 0.
struct Bf16Lines {
  uint16_t* high = nullptr;
  uint16_t* low = nullptr;  // the remainder that `high` leaves; NULL: not computed
  uint32_t ld = 0;
};

// Some of the row groups of a product: number i is group i % groups of unit i / groups in its list.
struct SomeGroups {
  RowProduct product;
  uint32_t first = 0;
  uint32_t n = 0;
};

// Line 16 * i + r is row r of group first + i; groups that the product excludes are 0.
cudaError_t unpack_groups(Encoding encoding, const SomeGroups& groups, const Bf16Lines& out,
                          cudaStream_t stream);
// Line t is token t of the product; `lines` are written, and those behind the last token are 0.
cudaError_t split_tokens(const RowProduct& product, uint32_t lines, const Bf16Lines& out,
                         cudaStream_t stream);
// Column 16 * i + r of line t, of `ld` columns, is that row's result for that token; the product has its
// place.
cudaError_t place_results(const SomeGroups& groups, const float* results, uint32_t ld, cudaStream_t stream);

}  // namespace tierd::cuda
