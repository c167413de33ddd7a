// The wall clock, and a virtual clock that advances only when nothing can happen any more at the present
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

// A thread in virtual time: it does one thing after the other, in the order of the requests.
class VirtualThread {
 public:
  // Returns when work of `ns`, requested at `now_ns`, begins.
  uint64_t begin(uint64_t now_ns, uint64_t ns) {
    const uint64_t begins = std::max(now_ns, free_ns_);
    free_ns_ = begins + ns;
    return begins;
  }

  // Returns how long it has had nothing to do.
  uint64_t idle_ns(uint64_t now_ns) const { return now_ns - std::min(now_ns, free_ns_); }

 private:
  uint64_t free_ns_ = 0;
};

class VirtualClock final : public Clock {
 public:
  // A server is busy with one item for some time and then chooses the next. It may choose only when all
  // events of the present time were delivered, since their receivers may post something more urgent.
  class Server {
   public:
    virtual void choose() = 0;

   protected:
    ~Server() = default;
  };
  // Adds a server; servers choose in the order of adding. Each outlives the clock's last `wait`.
  void add(Server& server) { servers_.push_back(&server); }
  // Registers a time, present or later, at which there is something to do.
  void at(uint64_t ns) { times_.push(ns); }

  // [any thread]
  uint64_t now_ns() const override { return now_ns_.load(std::memory_order_relaxed); }
  // Lets the servers choose, then advances to the first registered time.
  bool wait(Waiter& waiter) override;

 private:
  std::atomic<uint64_t> now_ns_{0};
  std::vector<Server*> servers_;
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> times_;
};

}  // namespace tierd
