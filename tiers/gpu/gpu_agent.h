// The GPU tier: memory that its own agent alone reaches, and a device that computes on it. Answers `run`,
// `move` (slots from memory of the host into its own, or inside it) and `resize` on two lanes, which work
// side by side: one computes, the other copies. Each serves its messages by priority, then in order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/agent/agent.h"
#include "core/agent/agent_entry.h"
#include "core/agent/failed_moves.h"
#include "core/agent/lane_queue.h"
#include "tiers/gpu/device.h"

namespace tierd {

class GpuAgent final : public Agent {
 public:
  GpuAgent(std::unique_ptr<Device> device, const Clock& clock, uint32_t credits = 64);

  std::string_view name() const override { return "gpu"; }
  uint32_t credits() const override { return credits_; }
  Submit submit(const Message& message, const Payload& payload) override;
  Drive drive() override;
  size_t poll(std::span<Done> done) override;
  int wait_fd() const override { return device_->wait_fd(); }
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
  void end(const Message& message, DoneStatus status);

  const std::unique_ptr<Device> device_;
  const Clock& clock_;
  const uint32_t credits_;
  uint32_t held_ = 0;  // credits in use
  // There may be more lanes than engines: the last engine serves all that are left.
  std::array<Lane, Device::kEngines> lanes_;
  FailedMoves failed_;
  std::deque<Done> done_;
};

// The agent of a device, as whoever loads agents takes it. `clock` outlives it.
MadeAgent made_with(std::unique_ptr<Device> device, const Clock& clock);

}  // namespace tierd
