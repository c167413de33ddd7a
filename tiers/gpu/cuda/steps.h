// The steps of dense segments (core/agent/program.h) on the device, and the copies around a run. Each row
// is computed independently of the others.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/agent/message.h"
#include "core/agent/program.h"

namespace tierd::cuda {

// All pointers are device pointers. Row i of `in` begins at in + i * ld_in, and that of `out` likewise.
struct StepArgs {
  const RowInfo* rows = nullptr;
  uint32_t n_rows = 0;
  const float* in = nullptr;
  float* out = nullptr;
  uint32_t ld_in = 0;
  uint32_t ld_out = 0;
  uint32_t column = 0;
  uint32_t width = 0;
  uint32_t head = 0;
  uint32_t offset = 0;
  const float* weight = nullptr;  // or NULL
  const float* bias = nullptr;
  const float* choice = nullptr;  // for add_chosen: the column of factors of an expert's results
  uint32_t ld_choice = 0;
  float eps = 0;
  float threshold = 0;
  float factor = 1;
  uint32_t span = 0;
  Activation activation = Activation::silu;
};

// rms_norm, layer_norm, head_norm and head_rms_norm: out = norm(in), row by row or head by head.
struct NormArgs {
  StepArgs step;
  bool centred = false;  // true: layer norm
  bool heads = false;    // true: line i itself, in place; false: the line that row i names
  uint32_t length = 0;   // values that are normalized together
};
cudaError_t norm(const NormArgs& args, cudaStream_t stream);
// The kinds add, add_bias, add_chosen, add_position, cap, clip, pick, reorder, scale, temper, activate and
// activate_mul.
cudaError_t elementwise(StepKind kind, const StepArgs& args, cudaStream_t stream);
// out[i] *= sigmoid(in[i] . weight)
cudaError_t gate(const StepArgs& args, cudaStream_t stream);

struct RopeArgs {
  StepArgs step;
  const float* frequencies = nullptr;
  uint32_t pairs = 0;  // rotated pairs of a head
  uint32_t head_dim = 0;
  bool interleaved = false;
  float magnitude = 1;
};
cudaError_t rope(const RopeArgs& args, cudaStream_t stream);

// out[i, e] = weight of expert e by in[i] . weight[e] + bias[e], 0 for those not chosen
// (tiers/dram/choose_experts.h).
struct RouteArgs {
  StepArgs step;
  uint32_t n_in = 0;
  ExpertChoice routing;
  const float* correction = nullptr;  // or NULL
};
cudaError_t route(const RouteArgs& args, cudaStream_t stream);

// Columns of lines that were sent with a message: value (i, c) of `values`, [n_rows x columns], is stored in
// out[i, first + c] or added to it.
struct PlacedColumns {
  const float* values = nullptr;
  uint32_t n_rows = 0;
  uint32_t first = 0;
  uint32_t columns = 0;
  float* out = nullptr;
  uint32_t ld_out = 0;
  bool add = false;
  // If not NULL, only the results of these neurons are stored: neuron n has columns n * rows_of_neuron …, or,
  // if `rows` is not NULL, the lines whose token belongs to it.
  const uint32_t* neurons = nullptr;
  uint32_t n_neurons = 0;
  uint32_t rows_of_neuron = 0;
  const RowInfo* rows = nullptr;
};
cudaError_t place_columns(const PlacedColumns& placed, cudaStream_t stream);
// out[i, 0 … width) = 0.
cudaError_t clear_columns(float* out, uint32_t ld_out, uint32_t n_rows, uint32_t width, cudaStream_t stream);

// out[line u * n_rows + i, 0 … inner) = f(in[line, 0 … inner)) * in[line, up_at … up_at + inner), after the
// biases of the expert are added, if row i uses expert u of the list.
struct ExpertActivation {
  const Unit* units = nullptr;
  uint32_t n_units = 0;
  uint32_t n_rows = 0;
  const float* choice = nullptr;
  uint32_t ldc = 0;
  const float* in = nullptr;
  uint32_t ld_in = 0;
  uint32_t up_at = 0;
  float* out = nullptr;
  uint32_t ld_out = 0;
  uint32_t inner = 0;
  Activation activation = Activation::silu;
  float threshold = 0;
  const float* gate_bias = nullptr;  // [experts x inner], or NULL
  const float* up_bias = nullptr;
};
cudaError_t activate_experts(const ExpertActivation& args, cudaStream_t stream);
// y[i, c] += choice[i, number of u] * results[line u * n_rows + i, c], in the order of the list.
struct ExpertSums {
  const Unit* units = nullptr;
  uint32_t n_units = 0;
  uint32_t n_rows = 0;
  const float* choice = nullptr;
  uint32_t ldc = 0;
  const float* results = nullptr;
  uint32_t ldr = 0;
  float* y = nullptr;
  uint32_t ldy = 0;
  uint32_t width = 0;
  const float* bias = nullptr;  // [experts x width], of results; or NULL
};
cudaError_t add_experts(const ExpertSums& args, cudaStream_t stream);

// A run of bytes in a block of a transfer, and its destination.
struct Landing {
  uint64_t from = 0;  // bytes from the beginning of the block
  uint64_t to = 0;    // bytes from the beginning of the memory
  uint64_t bytes = 0;
};
// Copies landings to their destinations; both addresses are multiples of 16. `most`: the largest `bytes`.
cudaError_t land(const Landing* landings, uint32_t n, uint64_t most, const std::byte* block,
                 std::byte* memory, cudaStream_t stream);

}  // namespace tierd::cuda
