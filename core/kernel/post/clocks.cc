#include "core/kernel/post/clocks.h"

#include "core/base/check.h"

namespace tierd {
namespace {

constexpr uint64_t kLongestWaitNs = 5'000'000;

}  // namespace

bool WallClock::wait(Waiter& waiter) {
  waiter.wait(kLongestWaitNs);
  return true;
}

bool VirtualClock::wait(Waiter&) {
  for (Server* server : servers_) server->choose();
  if (times_.empty()) return false;
  TIERD_CHECK(times_.top() >= now_ns_);
  now_ns_ = times_.top();
  while (!times_.empty() && times_.top() == now_ns_) times_.pop();
  return true;
}

}  // namespace tierd
