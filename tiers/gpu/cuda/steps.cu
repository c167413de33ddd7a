#include "tiers/gpu/cuda/steps.h"

#include "tiers/gpu/cuda/activation.cuh"
#include "tiers/gpu/cuda/launch.h"
#include "tiers/gpu/cuda/rows_kernel.cuh"

namespace tierd::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kWarps = kThreads / kWarp;

// Returns to all threads the sum of a value of each thread of a block of kThreads, in a fixed order.
__device__ double block_sum(double value, double (&of_warp)[kWarps]) {
  for (uint32_t i = 1; i < kWarp; i *= 2) value += __shfl_xor_sync(~0u, value, i);
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
  __syncthreads();
  double sum = 0;
  for (uint32_t w = 0; w < kWarps; ++w) sum += of_warp[w];
  __syncthreads();
  return sum;
}

// A block normalizes one run of values of one row.
__global__ void __launch_bounds__(kThreads) norm_kernel(NormArgs n) {
  __shared__ double of_warp[kWarps];
  const StepArgs& s = n.step;
  const uint32_t i = blockIdx.y, from = n.heads ? i : s.rows[i].row;
  const float* const x = s.in + uint64_t{from} * s.ld_in + s.column + blockIdx.x * n.length;
  float* const out = s.out + uint64_t{i} * s.ld_out + s.column + blockIdx.x * n.length;
  double mean = 0;
  if (n.centred) {
    double sum = 0;
    for (uint32_t c = threadIdx.x; c < n.length; c += kThreads) sum += x[c];
    mean = block_sum(sum, of_warp) / n.length;
  }
  double squares = 0;
  for (uint32_t c = threadIdx.x; c < n.length; c += kThreads) squares += (x[c] - mean) * (x[c] - mean);
  squares = block_sum(squares, of_warp);
  const double scale = 1.0 / sqrt(squares / n.length + s.eps);
  for (uint32_t c = threadIdx.x; c < n.length; c += kThreads) {
    if (n.centred) {
      out[c] = static_cast<float>((x[c] - mean) * scale * s.weight[c] + s.bias[c]);
    } else {
      out[c] = x[c] * static_cast<float>(scale) * s.weight[c];
    }
  }
}

template <StepKind K>
__global__ void elementwise_kernel(StepArgs s) {
  const uint32_t c = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  if (c >= s.width) return;
  const uint32_t out_row = K == StepKind::add_chosen ? s.rows[i].row : i;
  const uint32_t in_row = K == StepKind::pick ? s.rows[i].row : i;
  float& out = s.out[uint64_t{out_row} * s.ld_out + s.column + c];
  const float* const in = s.in + uint64_t{in_row} * s.ld_in;
  if constexpr (K == StepKind::add) out += in[c];
  if constexpr (K == StepKind::add_bias) out += s.weight[s.offset + c];
  if constexpr (K == StepKind::add_position)
    out += s.weight[uint64_t{s.rows[i].position + s.offset} * s.width + c];
  if constexpr (K == StepKind::scale) out *= s.factor;
  if constexpr (K == StepKind::cap) out = s.threshold * tanhf(out / s.threshold);
  if constexpr (K == StepKind::clip) {
    // A NaN passes unchanged.
    if (out > s.threshold) out = s.threshold;
    if (out < -s.threshold) out = -s.threshold;
  }
  if constexpr (K == StepKind::add_chosen) out += in[c] * s.choice[uint64_t{out_row} * s.ld_choice];
  if constexpr (K == StepKind::pick) out = in[s.weight == nullptr ? c : static_cast<uint32_t>(s.weight[c])];
  if constexpr (K == StepKind::reorder) out = in[static_cast<uint32_t>(s.weight[c])];
  if constexpr (K == StepKind::activate) out = activated(s.activation, s.threshold, in[c]);
  if constexpr (K == StepKind::activate_mul) out = gated(s.activation, s.threshold, in[c], in[s.width + c]);
  if constexpr (K == StepKind::temper)
    out *=
        1 + s.factor * logf(1 + floorf(static_cast<float>(s.rows[i].position) / static_cast<float>(s.span)));
}

// A block multiplies one row by the sigmoid of its product with the weight.
__global__ void __launch_bounds__(kThreads) gate_kernel(StepArgs s) {
  __shared__ double of_warp[kWarps];
  const float* const x = s.in + uint64_t{blockIdx.x} * s.ld_in;
  float* const out = s.out + uint64_t{blockIdx.x} * s.ld_out;
  double product = 0;
  for (uint32_t c = threadIdx.x; c < s.width; c += kThreads) product += double{x[c]} * s.weight[c];
  const float factor = 1.0F / (1.0F + expf(-static_cast<float>(block_sum(product, of_warp))));
  for (uint32_t c = threadIdx.x; c < s.width; c += kThreads) out[c] *= factor;
}

__global__ void rope_kernel(RopeArgs r) {
  const uint32_t at = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  const uint32_t head = at / r.pairs, j = at % r.pairs;
  if (head >= r.step.width / r.head_dim) return;
  float* const v = r.step.out + uint64_t{i} * r.step.ld_out + r.step.column + head * r.head_dim;
  float& a = r.interleaved ? v[2 * j] : v[j];
  float& b = r.interleaved ? v[2 * j + 1] : v[j + r.pairs];
  const float angle = static_cast<float>(r.step.rows[i].position) * r.frequencies[j];
  const float cosine = r.magnitude * cosf(angle), sine = r.magnitude * sinf(angle);
  const float turned = a * cosine - b * sine;
  b = b * cosine + a * sine;
  a = turned;
}

// A warp computes one expert's score of one row.
__global__ void route_scores(RouteArgs r) {
  const uint32_t e = blockIdx.x * kWarps + threadIdx.x / kWarp, i = blockIdx.y, lane = threadIdx.x % kWarp;
  if (e >= r.step.width) return;
  const float* const x = r.step.in + uint64_t{i} * r.step.ld_in;
  const float* const w = r.step.weight + uint64_t{e} * r.n_in;
  float sum = 0;
  for (uint32_t c = lane; c < r.n_in; c += kWarp) sum = __fmaf_rn(w[c], x[c], sum);
  for (uint32_t o = 1; o < kWarp; o *= 2) sum += __shfl_xor_sync(~0u, sum, o);
  if (r.step.bias != nullptr) sum += r.step.bias[e];
  if (lane == 0) r.step.out[uint64_t{i} * r.step.ld_out + e] = sum;
}

__device__ bool larger(float a, float b) {
  return a > b || (isnan(a) && !isnan(b));
}

// Finds the largest of n values, one after the other; among equals the lower number comes first.
template <class Value>
struct Largest {
  uint32_t n;
  Value value;
  float last = 0;
  uint32_t last_at = 0;
  bool any = false;

  __device__ bool has(uint32_t i) const {
    if (!any) return false;
    const float v = value(i);
    return larger(v, last) || (!larger(last, v) && i <= last_at);
  }
  __device__ uint32_t next() {
    uint32_t best = n;
    for (uint32_t i = 0; i < n; ++i) {
      if (has(i)) continue;
      if (best == n || larger(value(i), value(best))) best = i;
    }
    last = value(best);
    last_at = best;
    any = true;
    return best;
  }
};
template <class Value>
Largest(uint32_t, Value) -> Largest<Value>;

__device__ void score_experts(RouterScore score, float* scores, uint32_t n) {
  if (score == RouterScore::sigmoid) {
    for (uint32_t e = 0; e < n; ++e) scores[e] = 1.0F / (1.0F + expf(-scores[e]));
    return;
  }
  float highest = scores[0], whole = 0;
  for (uint32_t e = 1; e < n; ++e) highest = scores[e] > highest ? scores[e] : highest;
  for (uint32_t e = 0; e < n; ++e) whole += scores[e] = expf(scores[e] - highest);
  for (uint32_t e = 0; e < n; ++e) scores[e] /= whole;
}

// Returns a bit for each group that is used.
template <class Rank>
__device__ uint64_t best_groups(const ExpertChoice& r, uint32_t of_group, Rank rank) {
  Largest groups{r.groups, [&](uint32_t group) {
                   Largest best{of_group, [&](uint32_t i) { return rank(group * of_group + i); }};
                   float sum = 0;
                   for (uint32_t k = 0; k < r.group_best; ++k) sum += rank(group * of_group + best.next());
                   return sum;
                 }};
  uint64_t used = 0;
  for (uint32_t k = 0; k < r.groups_used; ++k) used |= uint64_t{1} << groups.next();
  return used;
}

// A thread chooses for one row, because there are few experts.
__global__ void route_choice(RouteArgs r) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, n = r.step.width;
  if (i >= r.step.n_rows) return;
  const ExpertChoice& how = r.routing;
  float* const scores = r.step.out + uint64_t{i} * r.step.ld_out;
  score_experts(how.score, scores, n);
  const auto rank = [&](uint32_t e) {
    return r.correction == nullptr ? scores[e] : scores[e] + r.correction[e];
  };
  const uint32_t of_group = how.groups == 0 ? n : n / how.groups;
  const uint64_t used = how.groups == 0 ? 1 : best_groups(how, of_group, rank);
  Largest picked{n, [&](uint32_t e) { return (used >> (e / of_group) & 1) == 0 ? -INFINITY : rank(e); }};
  float sum = 0;
  for (uint32_t pick = 0; pick < how.picks; ++pick) sum += scores[picked.next()];
  if (how.score == RouterScore::sigmoid) sum += 1e-20F;
  // `has` reads no score that this loop has changed already.
  for (uint32_t e = 0; e < n; ++e) {
    if (!picked.has(e)) {
      scores[e] = 0;
      continue;
    }
    if (how.sum_to_one) scores[e] /= sum;
    if (how.scale != 1) scores[e] *= how.scale;
  }
}

__global__ void place_kernel(PlacedColumns p) {
  const uint32_t c = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  if (c >= p.columns) return;
  if (p.neurons != nullptr) {
    const uint32_t neuron = (p.rows != nullptr ? p.rows[i].token : p.first + c) / p.rows_of_neuron;
    bool made = false;
    for (uint32_t n = 0; n < p.n_neurons; ++n) made |= p.neurons[n] == neuron;
    if (!made) return;
  }
  float& out = p.out[uint64_t{i} * p.ld_out + p.first + c];
  const float value = p.values[uint64_t{i} * p.columns + c];
  out = p.add ? out + value : value;
}

__global__ void clear_kernel(float* out, uint32_t ld_out, uint32_t width) {
  const uint32_t c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < width) out[uint64_t{blockIdx.y} * ld_out + c] = 0;
}

__global__ void activate_experts_kernel(ExpertActivation a) {
  const uint32_t c = blockIdx.x * blockDim.x + threadIdx.x, line = blockIdx.y;
  const uint32_t i = line % a.n_rows;
  if (c >= a.inner || a.choice[uint64_t{i} * a.ldc + a.units[line / a.n_rows].unit] == 0) return;
  const float* const in = a.in + uint64_t{line} * a.ld_in;
  const uint64_t bias = uint64_t{a.units[line / a.n_rows].unit} * a.inner + c;
  const float gate = a.gate_bias == nullptr ? in[c] : in[c] + a.gate_bias[bias];
  const float up = a.up_bias == nullptr ? in[a.up_at + c] : in[a.up_at + c] + a.up_bias[bias];
  a.out[uint64_t{line} * a.ld_out + c] = gated(a.activation, a.threshold, gate, up);
}

__global__ void add_experts_kernel(ExpertSums s) {
  const uint32_t c = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  if (c >= s.width) return;
  float sum = s.y[uint64_t{i} * s.ldy + c];
  for (uint32_t u = 0; u < s.n_units; ++u) {
    const float weight = s.choice[uint64_t{i} * s.ldc + s.units[u].unit];
    if (weight == 0) continue;
    float result = s.results[(uint64_t{u} * s.n_rows + i) * s.ldr + c];
    if (s.bias != nullptr) result += s.bias[uint64_t{s.units[u].unit} * s.width + c];
    sum += weight * result;
  }
  s.y[uint64_t{i} * s.ldy + c] = sum;
}

// Bytes of a landing that a block copies.
constexpr uint64_t kLandedByBlock = 32 << 10;
__global__ void land_kernel(const Landing* landings, const std::byte* block, std::byte* memory) {
  const Landing landing = landings[blockIdx.x];
  const uint64_t begin = blockIdx.y * kLandedByBlock;
  if (begin >= landing.bytes) return;
  const uint64_t end = landing.bytes - begin < kLandedByBlock ? landing.bytes : begin + kLandedByBlock;
  const std::byte* const from = block + landing.from;
  std::byte* const to = memory + landing.to;
  for (uint64_t at = begin + threadIdx.x * 16; at < end; at += blockDim.x * 16ull) {
    if (at + 16 <= end) {
      *reinterpret_cast<uint4*>(to + at) = *reinterpret_cast<const uint4*>(from + at);
    } else {
      for (uint64_t i = at; i < end; ++i) to[i] = from[i];
    }
  }
}

dim3 over_columns(uint32_t width, uint32_t rows) {
  return {blocks_for(width, kThreads), rows};
}

}  // namespace

cudaError_t norm(const NormArgs& args, cudaStream_t stream) {
  return launch(norm_kernel, dim3(args.step.width / args.length, args.step.n_rows), dim3(kThreads), stream,
                args);
}

cudaError_t elementwise(StepKind kind, const StepArgs& args, cudaStream_t stream) {
  const auto run = [&](auto kernel) {
    return launch(kernel, over_columns(args.width, args.n_rows), dim3(kThreads), stream, args);
  };
  switch (kind) {
    case StepKind::add:
      return run(elementwise_kernel<StepKind::add>);
    case StepKind::add_bias:
      return run(elementwise_kernel<StepKind::add_bias>);
    case StepKind::add_chosen:
      return run(elementwise_kernel<StepKind::add_chosen>);
    case StepKind::pick:
      return run(elementwise_kernel<StepKind::pick>);
    case StepKind::add_position:
      return run(elementwise_kernel<StepKind::add_position>);
    case StepKind::clip:
      return run(elementwise_kernel<StepKind::clip>);
    case StepKind::cap:
      return run(elementwise_kernel<StepKind::cap>);
    case StepKind::scale:
      return run(elementwise_kernel<StepKind::scale>);
    case StepKind::temper:
      return run(elementwise_kernel<StepKind::temper>);
    case StepKind::reorder:
      return run(elementwise_kernel<StepKind::reorder>);
    case StepKind::activate:
      return run(elementwise_kernel<StepKind::activate>);
    case StepKind::activate_mul:
      return run(elementwise_kernel<StepKind::activate_mul>);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t gate(const StepArgs& args, cudaStream_t stream) {
  return launch(gate_kernel, dim3(args.n_rows), dim3(kThreads), stream, args);
}

cudaError_t rope(const RopeArgs& args, cudaStream_t stream) {
  const uint32_t turned = args.step.width / args.head_dim * args.pairs;
  return launch(rope_kernel, over_columns(turned, args.step.n_rows), dim3(kThreads), stream, args);
}

cudaError_t route(const RouteArgs& args, cudaStream_t stream) {
  const dim3 grid(blocks_for(args.step.width, kWarps), args.step.n_rows);
  const cudaError_t error = launch(route_scores, grid, dim3(kThreads), stream, args);
  if (error != cudaSuccess) return error;
  return launch(route_choice, dim3(blocks_for(args.step.n_rows, kWarp)), dim3(kWarp), stream, args);
}

cudaError_t place_columns(const PlacedColumns& placed, cudaStream_t stream) {
  return launch(place_kernel, over_columns(placed.columns, placed.n_rows), dim3(kThreads), stream, placed);
}

cudaError_t clear_columns(float* out, uint32_t ld_out, uint32_t n_rows, uint32_t width, cudaStream_t stream) {
  return launch(clear_kernel, over_columns(width, n_rows), dim3(kThreads), stream, out, ld_out, width);
}

cudaError_t activate_experts(const ExpertActivation& args, cudaStream_t stream) {
  return launch(activate_experts_kernel, over_columns(args.inner, args.n_units * args.n_rows), dim3(kThreads),
                stream, args);
}

cudaError_t add_experts(const ExpertSums& args, cudaStream_t stream) {
  return launch(add_experts_kernel, over_columns(args.width, args.n_rows), dim3(kThreads), stream, args);
}

cudaError_t land(const Landing* landings, uint32_t n, uint64_t most, const std::byte* block,
                 std::byte* memory, cudaStream_t stream) {
  const dim3 grid(n, static_cast<unsigned>((most + kLandedByBlock - 1) / kLandedByBlock));
  return launch(land_kernel, grid, dim3(kThreads), stream, landings, block, memory);
}

}  // namespace tierd::cuda
