#include "tools/tierd/engine_desk.h"

#include <utility>

namespace tierd {

bool EngineDesk::try_leave(Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (left_.size() >= most_) return false;
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
  return std::exchange(left_, {});
}

void EngineDesk::wait() {
  std::unique_lock lock(mutex_);
  news_.wait(lock, [&] { return !left_.empty(); });
}

}  // namespace tierd
