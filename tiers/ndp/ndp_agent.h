// A DIMM that computes near its memory, for which a worker of this machine stands (Hermes, section 4.1.2).
// The agent serves the same messages as the DRAM tier, on two lanes that work side by side. One computes:
// neurons, and attention over the heads whose keys and values it keeps. The other moves neurons out of other
// memories of this process, as from DIMM to DIMM: a move takes as long as over a DIMM-link of a given rate.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/agent/agent.h"
#include "core/agent/clock.h"
#include "core/agent/failed_moves.h"
#include "core/agent/lane_queue.h"
#include "core/base/descriptor.h"
#include "tiers/dram/dram_agent.h"
#include "tiers/link/emulated_link.h"

namespace tierd {

class NdpAgent final : public Agent {
 public:
  // Registers the same memory as a DramAgent. `clock` must outlive the agent. Errors: no_space, io_error.
  static Result<std::unique_ptr<NdpAgent>> create(std::unique_ptr<DramAgent> dimm,
                                                  const EmulatedLink::Rate& link, const Clock& clock);

  std::string_view name() const override { return "ndp"; }
  uint32_t credits() const override { return dimm_->credits(); }
  Submit submit(const Message& message, const Payload& payload) override;
  Drive drive() override;
  size_t poll(std::span<Done> done) override;
  int wait_fd() const override { return timer_.get(); }
  bool waiting() const override { return moving_.has_value(); }

  DramAgent& dimm() { return *dimm_; }

 private:
  struct Request {
    Message message;
    Payload payload;
    uint64_t since_ns = 0;
  };
  struct Moving {
    Request request;
    EmulatedLink::Crossing crossing;
  };
  NdpAgent(std::unique_ptr<DramAgent> dimm, const EmulatedLink::Rate& link, const Clock& clock,
           Descriptor timer)
      : dimm_(std::move(dimm)), link_(link), clock_(clock), timer_(std::move(timer)) {}
  bool crosses(const Message& message) const;
  bool open(const MessageId& id) const;
  bool move();
  bool compute();
  Done carry_out(const Request& request);
  void end(const Message& message, DoneStatus status);

  const std::unique_ptr<DramAgent> dimm_;
  EmulatedLink link_;
  const Clock& clock_;
  const Descriptor timer_;
  LaneQueue<Request> moves_, runs_;
  std::optional<Moving> moving_;
  uint32_t held_ = 0;  // credits in use
  FailedMoves failed_;
  std::deque<Done> done_;
};

}  // namespace tierd
