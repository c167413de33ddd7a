// A queue of work that other threads leave for one thread: the engine's, or the reading thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace tierd {

class WorkDesk {
 public:
  using Work = std::function<void()>;
  explicit WorkDesk(size_t most) : most_(most) {}

  // [any thread] Returns false where the queue is full.
  bool try_leave(Work work);
  // [any thread] Adds work that must not be lost. It is accepted by a full queue, and does not count.
  void leave(Work work);

  // [its thread] Returns and removes all work, in order.
  std::vector<Work> take();
  // [its thread] Waits for work, at most for so long.
  void wait(std::chrono::milliseconds most);

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  size_t most_;
  size_t counted_ = 0;  // work of try_leave in left_
  std::vector<Work> left_;
};

}  // namespace tierd
