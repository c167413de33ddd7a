// Gives an agent a thread of its own. The kernel still sees an Agent, with a ring in each direction. The
// agent is lost if its thread ends by an exception, or if it completes nothing for too long: its accepted and
// later messages then complete as lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/agent/agent.h"
#include "core/agent/ring.h"
#include "core/agent/waiter.h"
#include "core/base/wake_signal.h"

namespace tierd {

class AgentThread : public Agent {
 public:
  struct Options {
    std::optional<uint32_t> core;  // the core to bind the thread to; see core/system/cores.h
    // The thread only hands work on to a device; when woken it runs at once, beside computing threads.
    bool short_slices = false;
    // Polls for new messages this long before it parks; only for a thread with a core of its own.
    uint64_t spin_ns = 0;
    // The agent is lost if it has work and completes nothing for this long; 0: never.
    uint64_t deadline_ns = 0;
  };
  // From here on only the new thread uses `agent`, which outlives this object.
  AgentThread(Agent& agent, const Options& options);
  // Waits for the thread, possibly for ever if it `is_stuck`.
  ~AgentThread() override;

  std::string_view name() const override { return agent_.name(); }
  uint32_t credits() const override { return agent_.credits(); }
  Submit submit(const Message& message, const Payload& payload) override;
  // Wakes the thread for all messages submitted since the last call. Waking it at the first message would let
  // it take the submitter's core, and find nothing more to do.
  Drive drive() override;
  size_t poll(std::span<Done> done) override;
  int wait_fd() const override { return done_signal_.fd(); }
  bool waiting() const override { return open_ != 0; }
  std::string lost_because() const override { return lost_because_; }

  // Returns whether the thread is late with a message: it may still use everything that the message refers
  // to, and its agent. It may return at any time. [kernel]
  bool is_stuck() const { return overdue_ && !ended_.load(std::memory_order_acquire); }
  // Asks the thread to end when it returns. [kernel]
  void end();
  // Ends the thread, and waits for it unless it is stuck; then the thread is detached, and this object must
  // never be destroyed. [kernel]
  void leave_behind();

  uint64_t wake_ups() const { return wake_ups_.load(std::memory_order_relaxed); }

 private:
  struct Request {
    Message message;
    Payload payload;
  };
  struct Accepted {
    MessageId id;
    uint8_t lane = 0;
  };
  void run(const Options& options);
  void serve(const Options& options);
  bool work();
  void signal();
  bool looks_lost();
  bool is_overdue();
  size_t poll_lost(std::span<Done> done);

  Agent& agent_;
  // These are used by the kernel.
  uint32_t open_ = 0;  // accepted and not yet polled
  std::vector<Accepted> accepted_;
  uint64_t deadline_ns_ = 0;
  bool submitted_ = false;  // whether messages wait for `drive` to wake the thread
  uint64_t since_ns_ = 0;   // when it last was without work, or completed a message
  uint64_t looked_ns_ = 0;  // time of the last poll since then
  bool overdue_ = false;
  std::string lost_because_;  // empty: the agent is not lost

  SpscRing<Request> requests_;
  SpscRing<Done> completions_;
  std::deque<Request> refused_;  // messages that the agent refused, to be offered again; for its thread only
  Waiter waiter_;
  std::atomic<bool> parked_{false};
  std::atomic<bool> done_signalled_{false};
  std::atomic<uint64_t> signals_{0};  // signals raised in done_signal_, or about to be
  uint64_t signals_read_ = 0;         // for the kernel only
  std::atomic<bool> ending_{false};
  std::atomic<bool> ended_{false};
  std::string failure_;  // written by the thread before it ends
  std::atomic<uint64_t> wake_ups_{0};
  WakeSignal done_signal_;
  std::thread thread_;
};

}  // namespace tierd
