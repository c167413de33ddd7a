// Keys and values on the device, and attention over them: [layer][sequence][position][kv_dim], keys and
// values apart, as the DRAM tier has them.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/agent/message.h"
#include "core/agent/program.h"

namespace tierd::cuda {

inline constexpr uint32_t kMostHeadDim = 512;

struct KvLayer {
  std::byte* keys = nullptr;  // of the layer: [sequence][position][kv_dim]
  std::byte* values = nullptr;
  KvEncoding encoding = KvEncoding::f16;
  uint32_t context = 0;
  uint32_t kv_dim = 0;
};

// The row's keys in[i, key_column …] and values in[i, value_column …], of width kv_dim, go to its position.
struct StoreKv {
  KvLayer kv;
  const RowInfo* rows = nullptr;
  uint32_t n_rows = 0;
  const float* in = nullptr;
  uint32_t ld_in = 0;
  uint32_t key_column = 0;
  uint32_t value_column = 0;
};
cudaError_t store_kv(const StoreKv& args, cudaStream_t stream);

// out[i, column + head …] = softmax(q k^T / sqrt(head_dim)) v over the positions up to the row's own, or the
// last `window` of them, of in[i, column + head …]. A block computes one head of one row: its warps share the
// positions by their numbers.
struct Attend {
  KvLayer kv;
  const RowInfo* rows = nullptr;
  uint32_t n_rows = 0;
  uint32_t n_heads = 0;
  uint32_t heads_a_kv_head = 0;
  uint32_t head_dim = 0;  // at most kMostHeadDim
  uint32_t window = 0;
  const float* in = nullptr;
  float* out = nullptr;
  uint32_t ld_in = 0;
  uint32_t ld_out = 0;
  uint32_t column = 0;
};
cudaError_t attend(const Attend& args, cudaStream_t stream);

}  // namespace tierd::cuda
