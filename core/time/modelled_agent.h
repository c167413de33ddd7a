// An agent in virtual time: a message takes the time that a Cost gives, not the time of its execution.
// Another agent executes it when that time is over, so that its effects appear then, and a message cancelled
// before has none.
//
// Lanes work in parallel; a lane serves one message at a time. A free lane chooses among the waiting messages
// by priority, then by order of arrival: a demand overtakes waiting prefetches, never one that has begun.
// Messages that end at the same time complete by priority, then by id.
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
  // Returns how long the message keeps its lane busy; `after_wait`: its thread was idle for wait_ns. Pure.
  virtual uint64_t ns(const Message& message, const Payload& payload, bool after_wait) const = 0;
  // Returns the idle time of a thread after which its next message counts as after a wait; by default no
  // message does. Pure.
  virtual uint64_t wait_ns() const { return UINT64_MAX; }
  // Returns whether the message shares the disk with reads, one after the other. Pure.
  virtual bool takes_turns_with_disk(const Message&) const { return false; }
};

class ModelledAgent final : public Agent, private VirtualClock::Server {
 public:
  // `agent` shares the kernel's thread. `thread` executes the agent's work and possibly that of others; NULL:
  // each lane is a device of its own. `disk` serves the messages that share the disk, if any. Everything
  // outlives the modelled agent, which outlives the clock's last `wait`.
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
