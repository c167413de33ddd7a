// Products for strategies (tierd_host::linear) where the weights lie in the host's memory: by its processor,
// whatever computes the model.
#pragma once

#include <memory>
#include <utility>

#include "core/agent/agent_entry.h"
#include "tiers/compute/kernels.h"
#include "tiers/compute/team.h"
#include "tiers/dram/linear.h"

namespace tierd {

class HostProducts final : public Products {
 public:
  HostProducts(const ComputeKernels& kernels, std::unique_ptr<Team> team)
      : kernels_(kernels), team_(std::move(team)) {}
  void linear(const PackedMatrix& matrix, const float* x, uint32_t rows, float* y) override {
    tierd::linear(kernels_, *team_, matrix, x, rows, y);
  }

 private:
  const ComputeKernels& kernels_;
  const std::unique_ptr<Team> team_;
};

}  // namespace tierd
