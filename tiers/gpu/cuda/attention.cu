#include "tiers/gpu/cuda/attention.h"

#include "tiers/gpu/cuda/device_values.cuh"
#include "tiers/gpu/cuda/launch.h"
#include "tiers/gpu/cuda/rows_kernel.cuh"

namespace tierd::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kWarps = kThreads / kWarp;
constexpr int kAtOnce = 4;  // positions that a warp reads together

__device__ inline float kv_value(const uint16_t* at) {
  return f16_value(*at);
}
__device__ inline float kv_value(const float* at) {
  return *at;
}
__device__ inline void put(float value, uint16_t* at) {
  *at = to_f16(value);
}
__device__ inline void put(float value, float* at) {
  *at = value;
}

template <class T>
__global__ void store_kernel(StoreKv s) {
  const uint32_t c = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  if (c >= s.kv.kv_dim) return;
  const RowInfo row = s.rows[i];
  const uint64_t at = (uint64_t{row.sequence} * s.kv.context + row.position) * s.kv.kv_dim + c;
  const float* const in = s.in + uint64_t{i} * s.ld_in;
  put(in[s.key_column + c], reinterpret_cast<T*>(s.kv.keys) + at);
  put(in[s.value_column + c], reinterpret_cast<T*>(s.kv.values) + at);
}

// Lane l has the values l, l + 32, … of a head, V of them. Each warp keeps the largest score so far, and its
// sums relative to that score.
template <class T, int V>
__global__ void __launch_bounds__(kThreads) attend_kernel(Attend a) {
  __shared__ float largest[kWarps], total[kWarps];
  __shared__ float summed[kWarps][V * kWarp];
  const uint32_t warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, head = blockIdx.x, i = blockIdx.y;
  const RowInfo row = a.rows[i];
  const uint32_t last = row.position + 1;
  const uint32_t first = a.window != 0 && last > a.window ? last - a.window : 0;
  const uint64_t base = uint64_t{row.sequence} * a.kv.context * a.kv.kv_dim +
                        uint64_t{head / a.heads_a_kv_head} * a.head_dim + lane;
  const T* const keys = reinterpret_cast<const T*>(a.kv.keys) + base;
  const T* const values = reinterpret_cast<const T*>(a.kv.values) + base;
  const float* const query = a.in + uint64_t{i} * a.ld_in + a.column + head * a.head_dim + lane;
  float q[V], sums[V];
  bool mine[V];
#pragma unroll
  for (int v = 0; v < V; ++v) {
    mine[v] = lane + v * kWarp < a.head_dim;
    q[v] = mine[v] ? query[v * kWarp] : 0;
    sums[v] = 0;
  }
  float most = -INFINITY, whole = 0;
  for (uint32_t p = first + warp; p < last; p += kWarps * kAtOnce) {
    float scores[kAtOnce];
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      const uint32_t at = p + n * kWarps;
      float dot = 0;
      if (at < last) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
          if (mine[v]) dot = __fmaf_rn(q[v], kv_value(keys + uint64_t{at} * a.kv.kv_dim + v * kWarp), dot);
        }
      }
      scores[n] = dot;
    }
    float now = most;
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
#pragma unroll
      for (uint32_t o = 1; o < kWarp; o *= 2) scores[n] += __shfl_xor_sync(~0u, scores[n], o);
      scores[n] *= a.scale;
      if (a.cap != 0) scores[n] = a.cap * tanhf(scores[n] / a.cap);
      if (p + n * kWarps < last) now = fmaxf(now, scores[n]);
    }
    const float kept = expf(most - now);
    most = now;
    whole *= kept;
#pragma unroll
    for (int v = 0; v < V; ++v) sums[v] *= kept;
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      const uint32_t at = p + n * kWarps;
      if (at >= last) continue;
      const float weight = expf(scores[n] - now);
      whole += weight;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        if (mine[v])
          sums[v] = __fmaf_rn(weight, kv_value(values + uint64_t{at} * a.kv.kv_dim + v * kWarp), sums[v]);
      }
    }
  }
  if (lane == 0) {
    largest[warp] = most;
    total[warp] = whole;
  }
#pragma unroll
  for (int v = 0; v < V; ++v) summed[warp][v * kWarp + lane] = sums[v];
  __syncthreads();
  float all = largest[0];
  for (uint32_t w = 1; w < kWarps; ++w) all = fmaxf(all, largest[w]);
  const float sink = a.sinks == nullptr ? -INFINITY : a.sinks[head];
  all = fmaxf(all, sink);
  for (uint32_t c = threadIdx.x; c < a.head_dim; c += kThreads) {
    float sum = 0, divisor = expf(sink - all);
    for (uint32_t w = 0; w < kWarps; ++w) {
      if (first + w >= last) break;  // this warp had no position
      const float factor = expf(largest[w] - all);
      sum = __fmaf_rn(summed[w][c], factor, sum);
      divisor = __fmaf_rn(total[w], factor, divisor);
    }
    a.out[uint64_t{i} * a.ld_out + a.column + head * a.head_dim + c] = sum / divisor;
  }
}

template <class T>
cudaError_t attend_over(const Attend& args, cudaStream_t stream) {
  const auto run = [&](auto kernel) {
    return launch(kernel, dim3(args.n_heads, args.n_rows), dim3(kThreads), stream, args);
  };
  if (args.head_dim <= 64) return run(attend_kernel<T, 2>);
  if (args.head_dim <= 128) return run(attend_kernel<T, 4>);
  if (args.head_dim <= 256) return run(attend_kernel<T, 8>);
  return run(attend_kernel<T, 16>);
}

}  // namespace

cudaError_t store_kv(const StoreKv& args, cudaStream_t stream) {
  const dim3 grid(blocks_for(args.kv.kv_dim, kThreads), args.n_rows);
  return args.kv.encoding == KvEncoding::f16
             ? launch(store_kernel<uint16_t>, grid, dim3(kThreads), stream, args)
             : launch(store_kernel<float>, grid, dim3(kThreads), stream, args);
}

cudaError_t attend(const Attend& args, cudaStream_t stream) {
  return args.kv.encoding == KvEncoding::f16 ? attend_over<uint16_t>(args, stream)
                                             : attend_over<float>(args, stream);
}

}  // namespace tierd::cuda
