// The KV cache on the device, and attention over it: [layer][sequence][position][kv_dim], keys and values
// apart, as in the DRAM tier.
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

// Stores a row's keys in[i, key_column …] and values in[i, value_column …], of width kv_dim, at its position.
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

// out[i, column + head …] = softmax(scale * q k^T) v, with q in in[i, column + head …], and, if `cap` is not
// 0, with cap * tanh(x / cap) of the scaled products x, over the positions up to the row's own, or the last
// `window` of them. A block computes one head of one row; the positions are dealt to its warps by number.
struct Attend {
  KvLayer kv;
  const RowInfo* rows = nullptr;
  uint32_t n_rows = 0;
  uint32_t n_heads = 0;
  uint32_t heads_a_kv_head = 0;
  uint32_t head_dim = 0;  // at most kMostHeadDim
  uint32_t window = 0;
  float scale = 1;
  float cap = 0;
  const float* sinks = nullptr;  // [n_heads] scores without a position or a value; or NULL
  const float* in = nullptr;
  float* out = nullptr;
  uint32_t ld_in = 0;
  uint32_t ld_out = 0;
  uint32_t column = 0;
};
cudaError_t attend(const Attend& args, cudaStream_t stream);

}  // namespace tierd::cuda
