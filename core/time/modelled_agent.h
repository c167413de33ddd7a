// An agent in virtual time: how long a message takes is what a cost says of it, not what carrying it out
// took. Another agent carries it out when that time is over, so that effects appear then, and a message that
// was cancelled has none.
//
// Lanes work side by side; a lane serves one message at a time. When it is free it chooses, among the
// messages that wait then, by priority, then by order of arrival: a demand overtakes prefetches that wait,
// never one that has been begun. What ends at the same time is told by priority, then by id.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "core/agent/agent.h"
#include "core/agent/failed_moves.h"
#include "core/agent/lane_queue.h"
#include "core/kernel/post/clocks.h"

namespace tierd {

class Cost {
 public:
  virtual ~Cost() = default;
  // How long the message keeps its lane busy; `after_wait`: its thread had nothing to do for wait_ns. Pure.
  virtual uint64_t ns(const Message& message, const Payload& payload, bool after_wait) const = 0;
  // Returns how long a thread has nothing to do until its next message is one after a wait; the default: no
  // message is. Pure.
  virtual uint64_t wait_ns() const { return UINT64_MAX; }
  // Whether it takes turns with what the disk reads. Pure.
  virtual bool takes_turns_with_disk(const Message&) const { return false; }
};

class ModelledAgent final : public Agent, private VirtualClock::Server {
 public:
  // `agent` shares the kernel's thread. `thread` does the agent's work, beside what else it has to do; NULL:
  // each lane is a device of its own. `disk` serves what takes turns with its reads, where there is one.
  // Everything outlives the modelled agent, and this one the clock's last `wait`.
  ModelledAgent(Agent& agent, const Cost& cost, VirtualClock& clock, VirtualThread* thread = nullptr,
                VirtualThread* disk = nullptr);

  std::string_view name() const override { return agent_.name(); }
  uint32_t credits() const override { return agent_.credits(); }
  Submit submit(const Message& message, const Payload& payload) override;
  Drive drive() override;
  size_t poll(std::span<Done> done) override;

 private:
  struct Request {
    Message message;
    Payload payload;
  };
  struct Running {
    Request request;
    uint64_t start_ns = 0;
    uint64_t done_ns = 0;
  };
  struct Lane {
    LaneQueue<Request> waiting;
    std::optional<Running> running;
  };

  void choose() override;
  void end(const Message& message, DoneStatus status);
  Done carry_out(const Request& request);
  Lane& lane(uint8_t number);
  bool open(const MessageId& id) const;

  Agent& agent_;
  const Cost& cost_;
  VirtualClock& clock_;
  VirtualThread* const thread_;
  VirtualThread* const disk_;
  uint32_t held_ = 0;  // credits in use
  std::vector<Lane> lanes_;
  FailedMoves withdrawn_;
  std::vector<Running> over_;  // used by one function, kept for its memory
  std::deque<Done> done_;
};

}  // namespace tierd
