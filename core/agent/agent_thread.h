// Gives an agent a thread of its own: to the kernel it stays an Agent, with a ring in each direction. The
// agent is lost where its thread ends by an exception, or where it answers nothing for too long: what it has
// accepted, and what it is sent later, completes as lost.
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
    std::optional<uint32_t> core;  // bound to it; see core/system/cores.h
    // It only hands work on, to a device, and runs at once when it is woken, beside threads that compute.
    bool short_slices = false;
    // Looks for new messages so long before it parks; only with a core to itself.
    uint64_t spin_ns = 0;
    // The agent is lost where it has something to do and completes nothing for so long; 0: never.
    uint64_t deadline_ns = 0;
  };
  // `agent` is used by the new thread alone from here on, and outlives this object.
  AgentThread(Agent& agent, const Options& options);
  // Waits for the thread; where that `is_stuck`, perhaps for ever.
  ~AgentThread() override;

  std::string_view name() const override { return agent_.name(); }
  uint32_t credits() const override { return agent_.credits(); }
  Submit submit(const Message& message, const Payload& payload) override;
  // Wakes the thread for all that was submitted since: woken at the first message, it would take the core
  // from whoever submits the others, and find nothing more to do.
  Drive drive() override;
  size_t poll(std::span<Done> done) override;
  int wait_fd() const override { return done_signal_.fd(); }
  bool waiting() const override { return open_ != 0; }
  std::string lost_because() const override { return lost_because_; }

  // The thread is with something that it was given too long ago: it may still use whatever that refers to,
  // and its agent. It may come back at any time. [kernel]
  bool is_stuck() const { return overdue_ && !ended_.load(std::memory_order_acquire); }
  // Asks the thread to end when it comes back. [kernel]
  void end();
  // Ends the thread, and waits for it unless it is stuck: then nobody ever does, and this object is never to
  // be destroyed. [kernel]
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
  // These are the kernel's.
  uint32_t open_ = 0;  // accepted and not yet polled
  std::vector<Accepted> accepted_;
  uint64_t deadline_ns_ = 0;
  bool submitted_ = false;  // something that the thread was not woken for yet
  uint64_t since_ns_ = 0;   // when it last had nothing to do, or completed something
  uint64_t looked_ns_ = 0;  // when it was last looked at since then
  bool overdue_ = false;
  std::string lost_because_;  // empty: it is not

  SpscRing<Request> requests_;
  SpscRing<Done> completions_;
  std::deque<Request> refused_;  // by the agent, to be offered again; its thread's
  Waiter waiter_;
  std::atomic<bool> parked_{false};
  std::atomic<bool> done_signalled_{false};
  std::atomic<uint64_t> signals_{0};  // raised in done_signal_, or about to be
  uint64_t signals_read_ = 0;         // the kernel's
  std::atomic<bool> ending_{false};
  std::atomic<bool> ended_{false};
  std::string failure_;  // its thread's, until it has ended
  std::atomic<uint64_t> wake_ups_{0};
  WakeSignal done_signal_;
  std::thread thread_;
};

}  // namespace tierd
