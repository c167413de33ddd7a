// Where other threads leave work for one thread: the engine's, or the one that reads bodies.
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

  // [any thread] False: as much as may lies there already.
  bool try_leave(Work work);
  // [any thread] What must not be lost: it is taken however much lies there, and does not count.
  void leave(Work work);

  // [its thread] What was left, in its order.
  std::vector<Work> take();
  // [its thread] Sleeps until there is something, or for so long.
  void wait(std::chrono::milliseconds most);

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  size_t most_;
  size_t counted_ = 0;  // of those left
  std::vector<Work> left_;
};

}  // namespace tierd
