// What the host's processor does for a device: products for strategies (tierd_host::linear), whose weights
// lie in its memory, and gathering what is copied from there.
#pragma once

#include <memory>
#include <utility>

#include "core/agent/agent_entry.h"
#include "tiers/compute/kernels.h"
#include "tiers/compute/team.h"
#include "tiers/dram/linear.h"

namespace tierd {

class HostWork final : public Products {
 public:
  HostWork(const ComputeKernels& kernels, std::unique_ptr<Team> team)
      : kernels_(kernels), team_(std::move(team)) {}
  void linear(const PackedMatrix& matrix, const float* x, uint32_t rows, float* y) override {
    tierd::linear(kernels_, *team_, matrix, x, rows, y);
  }

  // Used by one caller at a time.
  Team& team() { return *team_; }

 private:
  const ComputeKernels& kernels_;
  const std::unique_ptr<Team> team_;
};

}  // namespace tierd
