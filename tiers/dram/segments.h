// Runs the dense segments of sites on the CPU: norms, attention, activations, and the choice of experts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/agent/message.h"
#include "core/agent/program.h"
#include "tiers/compute/kernels.h"
#include "tiers/compute/team.h"
#include "tiers/dram/kv_cache.h"
#include "tiers/dram/reserved_memory.h"

namespace tierd {

// A plan, and the values that its segments and the neurons of its sites read and write.
struct PlannedValues {
  const ComputePlan plan;
  const ComputeKernels& kernels;
  Team& team;
  ReservedMemory activations;
  std::vector<uint64_t> offsets;  // of the buffers in `activations`
  std::vector<uint32_t> strides;
  std::vector<const float*> tensors;

  float* row(BufferId buffer, uint32_t i) {
    return reinterpret_cast<float*>(activations.data() + offsets[buffer]) + uint64_t{i} * strides[buffer];
  }
};

class Segments {
 public:
  Segments(PlannedValues& values, KvCache kv);

  void run(const Program& program, std::span<const RowInfo> rows);

 private:
  void run_step(const Step& step, std::span<const RowInfo> rows);
  void run_row(const Step& step, const RowInfo& info, uint32_t i);
  const float* tensor(TensorId id) const { return id == kNoTensor ? nullptr : values_.tensors[id]; }
  void gate(const Step& step, const float* in, float* out);
  void attend(const Step& step, std::span<const RowInfo> rows);
  void rotate(const Step& step, uint32_t i);
  void prepare_rotation(std::span<const RowInfo> rows);
  void route(const Step& step, uint32_t rows);
  void pick(const Step& step, const RowInfo& info, float* out);
  void add_chosen(const Step& step, const RowInfo& info, const float* given);

  PlannedValues& values_;
  const ComputePlan& plan_ = values_.plan;
  const ComputeKernels& kernels_ = values_.kernels;
  Team& team_ = values_.team;
  KvCache kv_;
  std::vector<uint32_t> rotation_positions_;  // positions for which `rotation_` was computed
  std::vector<float> rotation_;               // [rows][rotated pairs][cos, sin]
  std::vector<std::vector<float>> scores_;    // [workers] of one attention head
  std::vector<const std::byte*> experts_;     // weights of the router
};

}  // namespace tierd
