// Gives an agent a thread of its own: to the kernel it stays an Agent, with a ring in each direction.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <thread>

#include "core/agent/agent.h"
#include "core/kernel/post/waiter.h"
#include "core/message/ring.h"

namespace tierd {

class AgentThread : public Agent {
 public:
  struct Options {
    std::optional<uint32_t> core;  // bound to it; see core/base/cores.h
    // Looks for new messages so long before it parks; only with a core to itself.
    uint64_t spin_ns = 0;
  };
  // `agent` is used by the new thread alone from here on, and outlives this object.
  AgentThread(Agent& agent, const Options& options);
  ~AgentThread() override;

  std::string_view name() const override { return agent_.name(); }
  uint32_t credits() const override { return agent_.credits(); }
  Submit submit(const Message& message, const Payload& payload) override;
  Drive drive() override { return Drive::idle; }
  size_t poll(std::span<Done> done) override;
  int wait_fd() const override { return done_fd_; }
  bool waiting() const override { return open_ != 0; }

  uint64_t wake_ups() const { return wake_ups_.load(std::memory_order_relaxed); }

 private:
  struct Request {
    Message message;
    Payload payload;
  };
  void run(const Options& options);
  bool work();

  Agent& agent_;
  uint32_t open_ = 0;  // accepted and not yet polled; the kernel's
  SpscRing<Request> requests_;
  SpscRing<Done> completions_;
  std::deque<Request> refused_;  // by the agent, to be offered again; its thread's
  Waiter waiter_;
  std::atomic<bool> parked_{false};
  std::atomic<bool> done_signalled_{false};
  std::atomic<uint64_t> signals_{0};  // written to done_fd_, or about to be
  uint64_t signals_read_ = 0;         // the kernel's
  std::atomic<bool> ending_{false};
  std::atomic<uint64_t> wake_ups_{0};
  int done_fd_ = -1;
  std::thread thread_;
};

}  // namespace tierd
