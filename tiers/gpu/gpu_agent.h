// The GPU tier: memory that only its own agent reaches, and a device that computes on it. The agent answers
// `run`, `move` (slots from memory of the host into its own memory, or inside it) and `resize` on two lanes,
// which work side by side: one computes, the other copies. Each lane serves its messages by priority, then in
// order. If the agent has the store's file, it also reads that into its memory, beside both lanes (`read`,
// tiers/gpu/direct_reads.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/agent/agent.h"
#include "core/agent/agent_entry.h"
#include "core/agent/failed_moves.h"
#include "core/agent/lane_queue.h"
#include "core/base/descriptor.h"
#include "tiers/gpu/device.h"

namespace tierd {

class GpuAgent final : public Agent {
 public:
  static constexpr uint32_t kCredits = 64;
  // `reads` serves the messages `read`; NULL: the agent serves none. It uses the device and has as many
  // credits as this agent.
  GpuAgent(std::unique_ptr<Device> device, const Clock& clock, uint32_t credits = kCredits,
           std::unique_ptr<Agent> reads = {});

  std::string_view name() const override { return "gpu"; }
  uint32_t credits() const override { return credits_; }
  Submit submit(const Message& message, const Payload& payload) override;
  Drive drive() override;
  size_t poll(std::span<Done> done) override;
  int wait_fd() const override { return ready_.open() ? ready_.get() : device_->wait_fd(); }
  bool waiting() const override;

 private:
  struct Lane {
    LaneQueue<DeviceRequest> waiting;
    std::optional<Message> running;
  };
  Lane& lane_of(uint8_t number) { return lanes_[std::min<size_t>(number, lanes_.size() - 1)]; }
  bool open(const MessageId& id) const;
  bool advance(Device::Engine engine);
  bool soon() const;
  bool read();
  void end(const Message& message, DoneStatus status);

  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Agent> reads_;
  std::vector<MessageId> reading_;  // accepted by `reads_` and not completed
  Descriptor ready_;                // readable when `reads_` or the device has completed something
  const Clock& clock_;
  const uint32_t credits_;
  uint32_t held_ = 0;  // credits in use
  // There may be more lanes than engines: the last engine serves the remaining lanes.
  std::array<Lane, Device::kEngines> lanes_;
  FailedMoves failed_;
  std::deque<Done> done_;
};

// Returns the agent of a device with what it offers beside messages. The objects that the context refers to
// must outlive the agent. Errors: those of make_direct_reads, if the context has a ReadTask.
Result<MadeAgent> made_with(std::unique_ptr<Device> device, const AgentContext& context);

}  // namespace tierd
