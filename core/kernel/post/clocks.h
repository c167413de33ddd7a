// The time of the wall, and a virtual one that goes on only when nothing can happen any more at the present
// time. One thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "core/agent/clock.h"
#include "core/agent/waiter.h"
#include "core/base/time.h"

namespace tierd {

class WallClock final : public Clock {
 public:
  uint64_t now_ns() const override { return tierd::now_ns(); }
  // Sleeps until something may have happened, at most a few milliseconds.
  bool wait(Waiter& waiter) override;
};

// A thread in virtual time: what it has to do, it does one after the other, in the order in which it was
// asked.
class VirtualThread {
 public:
  // Returns when it begins what takes so long, asked for at `now`.
  uint64_t begin(uint64_t now_ns, uint64_t ns) {
    const uint64_t begins = std::max(now_ns, free_ns_);
    free_ns_ = begins + ns;
    return begins;
  }

  // How long it has had nothing to do.
  uint64_t idle_ns(uint64_t now_ns) const { return now_ns - std::min(now_ns, free_ns_); }

 private:
  uint64_t free_ns_ = 0;
};

class VirtualClock final : public Clock {
 public:
  // A server works on something for some time, and then chooses what is next. It may choose only when all
  // that happens at the present time has been told: whoever hears of it may have something better for it.
  class Server {
   public:
    virtual void choose() = 0;

   protected:
    ~Server() = default;
  };
  // Servers choose in this order. Each outlives the clock's last `wait`.
  void add(Server& server) { servers_.push_back(&server); }
  // There is something to do at that time, which is the present or a later one.
  void at(uint64_t ns) { times_.push(ns); }

  // [any thread]
  uint64_t now_ns() const override { return now_ns_.load(std::memory_order_relaxed); }
  // Lets the servers choose, and goes on to the first time at which there is something to do.
  bool wait(Waiter& waiter) override;

 private:
  std::atomic<uint64_t> now_ns_{0};
  std::vector<Server*> servers_;
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> times_;
};

}  // namespace tierd
