// HostWork by the threads of the tier.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "tiers/compute/kernels.h"
#include "tiers/compute/team.h"
#include "tiers/gpu/host_work.h"

namespace tierd {

class TeamWork final : public HostWork {
 public:
  // `kernels` must outlive the object.
  TeamWork(const ComputeKernels& kernels, std::unique_ptr<Team> team)
      : kernels_(kernels), team_(std::move(team)) {}
  void linear(const PackedMatrix& matrix, const float* x, uint32_t rows, float* y) override;
  void copy(std::span<const Copy> copies) override;
  void encode(std::span<const Encode> pieces) override;

 private:
  const ComputeKernels& kernels_;
  const std::unique_ptr<Team> team_;
};

}  // namespace tierd
