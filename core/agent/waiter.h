// The object that the kernel's thread sleeps on: it watches the descriptors of agents that wait for a device,
// and a stop request from a signal handler or another thread.
#pragma once

#include <cstdint>
#include <memory>

namespace tierd {

class Waiter {
 public:
  // Throws std::system_error if it gets no descriptor.
  Waiter();
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Does not take ownership of the descriptor.
  void watch(int fd);
  // Stops watching the descriptor; to be called before it is closed.
  void forget(int fd);
  // Sleeps until a watched descriptor is readable, `stop` was called, or the time is over.
  void wait(uint64_t timeout_ns);
  // [any thread, async-signal-safe]
  void stop();
  bool stopping() const;
  // Forgets a stop request.
  void clear_stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tierd
