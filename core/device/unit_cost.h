// How long a processor takes for what a unit that computes is asked: weights at the rate at which its kernels
// multiply them, attention at that of memory, all else by the floats that it touches.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/device/machine.h"
#include "core/kernel/post/modelled_agent.h"
#include "core/message/extent_table.h"
#include "core/program/program.h"

namespace tierd {

// What an agent that reads directly reads. Both outlive the cost.
struct UnitReads {
  ExtentTable extents;
  std::span<const ExtentPieces> pieces;
};

class UnitCost final : public Cost {
 public:
  // `link` carries what comes from other memories; without one the processor copies it. Error: not_found,
  // naming an encoding of the plan whose rate is not in the description.
  static Result<UnitCost> create(const ProcessorDescription& processor, ComputePlan plan,
                                 std::optional<LinkDescription> link = {});

  // The unit reads from this disk, as if nobody else did. It outlives the cost.
  void set_reads(const UnitReads& reads, const DiskDescription& disk) {
    reads_ = reads;
    disk_ = &disk;
  }

  uint64_t ns(const Message& message, const Payload& payload) const override;

 private:
  UnitCost(double memory_rate, ComputePlan plan, std::vector<KernelRate> rates,
           std::optional<LinkDescription> link)
      : memory_rate_(memory_rate), plan_(std::move(plan)), rates_(std::move(rates)), link_(std::move(link)) {}
  double move_seconds(const Message& message, size_t units) const;
  double read_seconds(std::span<const Unit> units) const;
  double run_seconds(const Message& message, const Payload& payload) const;
  double neurons_seconds(const Message& message, std::span<const Unit> units) const;
  double step_seconds(const Step& step, std::span<const RowInfo> rows) const;

  double memory_rate_;
  ComputePlan plan_;
  std::vector<KernelRate> rates_;  // [editions]
  std::optional<LinkDescription> link_;
  UnitReads reads_;
  const DiskDescription* disk_ = nullptr;
};

}  // namespace tierd
