#include "tools/tierd/engine_desk.h"

#include <utility>

namespace tierd {

bool EngineDesk::try_leave(Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (counted_ >= most_) return false;
    ++counted_;
    left_.push_back(std::move(work));
  }
  news_.notify_one();
  return true;
}

void EngineDesk::leave(Work work) {
  {
    const std::lock_guard lock(mutex_);
    left_.push_back(std::move(work));
  }
  news_.notify_one();
}

std::vector<EngineDesk::Work> EngineDesk::take() {
  const std::lock_guard lock(mutex_);
  counted_ = 0;
  return std::exchange(left_, {});
}

void EngineDesk::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, most, [&] { return !left_.empty(); });
}

}  // namespace tierd
