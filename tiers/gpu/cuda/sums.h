// Neurons whose results are added: bundles (core/model/layout/bundle.h) and columns
// (core/model/layout/column.h). One warp sums a neuron's value for a token; weighted columns are summed by
// runs of 64 neurons, in the order of their numbers, and the runs in theirs: the order of arithmetic depends
// on the neurons alone.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/agent/message.h"
#include "core/model/activation.h"
#include "core/model/layout/encoding.h"

namespace tierd::cuda {

// All pointers are device pointers. values[t*ldv + k] = f(gate_k . x[t] + bias) * (up_k . x[t] + bias), or
// f(up_k . x[t] + bias) if there is no gate.
struct BundleValues {
  const std::byte* memory = nullptr;
  const Unit* units = nullptr;  // unit k's rows begin at memory + place * 64
  uint32_t n_units = 0;
  uint32_t n_in = 0;
  bool gated = false;
  uint64_t up_offset = 0;
  Activation activation = Activation::relu;
  float threshold = 0;
  const float* gate_bias = nullptr;  // by number of the neuron, or NULL
  const float* up_bias = nullptr;
  const float* x = nullptr;
  float* values = nullptr;
  uint32_t ldx = 0;  // multiple of 4
  uint32_t ldv = 0;
  uint32_t tokens = 0;
};
cudaError_t bundle_values(Encoding encoding, const BundleValues& asked, cudaStream_t stream);

// values[t*ldv + k] = x[t*ldx + number of unit k].
struct ColumnValues {
  const Unit* units = nullptr;
  uint32_t n_units = 0;
  const float* x = nullptr;
  float* values = nullptr;
  uint32_t ldx = 0;
  uint32_t ldv = 0;
  uint32_t tokens = 0;
};
cudaError_t column_values(const ColumnValues& asked, cudaStream_t stream);

// Columns, and the values that they are multiplied by.
struct WeightedColumns {
  const std::byte* memory = nullptr;
  const Unit* units = nullptr;  // unit k's column begins at memory + place * 64 + offset
  uint32_t n_units = 0;
  uint64_t offset = 0;
  uint32_t width = 0;  // values of a column
  float* values = nullptr;
  uint32_t ldv = 0;
  uint32_t tokens = 0;
};
// Sets the values of units that a token does not use to 0; masks [neuron x mask_words].
cudaError_t silence_values(const WeightedColumns& columns, const uint64_t* masks, uint32_t mask_words,
                           cudaStream_t stream);
// lengths[t*ldl + number of unit k] = |values[t*ldv + k]| * the length of column k.
cudaError_t measure_columns(Encoding encoding, const WeightedColumns& columns, float* lengths, uint32_t ldl,
                            cudaStream_t stream);
// lengths[t*ldl + number of unit k] = |values[t*ldv + k]|.
cudaError_t tell_values(const WeightedColumns& columns, float* lengths, uint32_t ldl, cudaStream_t stream);
// Units begins[r] … begins[r + 1) are run r, which is summed before its sum is added to y[t*ldy + c].
struct ColumnRuns {
  const uint32_t* begins = nullptr;  // [n_runs + 1]; the first is the first unit of the columns
  uint32_t n_runs = 0;
  float* partial = nullptr;  // scratch [tokens of a part x n_runs x width]
  uint32_t tokens = 0;       // of a part, at least 1
};
cudaError_t add_columns(Encoding encoding, const WeightedColumns& columns, const ColumnRuns& runs, float* y,
                        uint32_t ldy, cudaStream_t stream);

}  // namespace tierd::cuda
