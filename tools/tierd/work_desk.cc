#include "tools/tierd/work_desk.h"

#include <utility>

namespace tierd {

bool WorkDesk::try_leave(Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (counted_ >= most_) return false;
    ++counted_;
    left_.push_back(std::move(work));
  }
  news_.notify_one();
  return true;
}

void WorkDesk::leave(Work work) {
  {
    const std::lock_guard lock(mutex_);
    left_.push_back(std::move(work));
  }
  news_.notify_one();
}

std::vector<WorkDesk::Work> WorkDesk::take() {
  const std::lock_guard lock(mutex_);
  counted_ = 0;
  return std::exchange(left_, {});
}

void WorkDesk::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, most, [&] { return !left_.empty(); });
}

}  // namespace tierd
