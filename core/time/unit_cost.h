// The time that a unit takes for messages: its processor's for a run, its links' for data from other
// memories, and the disk's for direct reads.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/agent/extent_table.h"
#include "core/agent/program.h"
#include "core/time/machine.h"
#include "core/time/modelled_agent.h"
#include "core/time/unit_processor.h"

namespace tierd {

// The extents of an agent that reads directly. Both must outlive the cost.
struct UnitReads {
  ExtentTable extents;
  std::span<const ExtentPieces> pieces;
};

class UnitCost final : public Cost {
 public:
  // `link` carries data from other memories; without one the processor copies it. Error: not_found, naming an
  // encoding of the plan without a described rate.
  static Result<UnitCost> create(const ProcessorDescription& processor, ComputePlan plan,
                                 std::optional<LinkDescription> link = {});
  // For a device; `link` also carries the activations that it takes from other agents.
  UnitCost(const UnitDescription& device, ComputePlan plan, std::optional<LinkDescription> link = {})
      : UnitCost(unit_processor(device), std::move(plan), std::move(link)) {
    takes_over_link_ = link_.has_value();
  }

  // [MemoryId] the link from that memory; none: the processor copies. Further memories use `link`.
  void set_links(std::vector<std::optional<LinkDescription>> links) { links_ = std::move(links); }
  // The unit reads from this disk, as if it were the only reader. The disk must outlive the cost.
  void set_reads(const UnitReads& reads, const DiskDescription& disk) {
    reads_ = reads;
    disk_ = &disk;
  }

  uint64_t ns(const Message& message, const Payload& payload, bool after_wait) const override;
  uint64_t wait_ns() const override { return wait_ns_; }
  bool takes_turns_with_disk(const Message& message) const override;

 private:
  UnitCost(std::unique_ptr<UnitProcessor> processor, ComputePlan plan, std::optional<LinkDescription> link)
      : processor_(std::move(processor)), plan_(std::move(plan)), link_(std::move(link)) {}
  const std::optional<LinkDescription>& link_from(MemoryId memory) const {
    return memory < links_.size() ? links_[memory] : link_;
  }
  // The time of expansion after the transfer.
  double expand_seconds(const Message& message, size_t units) const;
  double bytes_as(const Message& message, const MadeNeurons& made, size_t units) const;
  double move_seconds(const Message& message, const Payload& payload) const;
  double read_seconds(const Message& message, std::span<const Unit> units) const;
  double run_seconds(const Message& message, const Payload& payload, bool after_wait) const;
  double take_seconds(double floats) const;
  double neurons_seconds(const Message& message, std::span<const Unit> units, std::span<const uint64_t> masks,
                         bool after_wait) const;
  double step_seconds(const Step& step, std::span<const RowInfo> rows) const;

  std::unique_ptr<UnitProcessor> processor_;
  ComputePlan plan_;
  std::optional<LinkDescription> link_;
  std::vector<std::optional<LinkDescription>> links_;
  bool takes_over_link_ = false;
  uint64_t wait_ns_ = UINT64_MAX;  // a device has no rates after a wait
  UnitReads reads_;
  const DiskDescription* disk_ = nullptr;
};

}  // namespace tierd
