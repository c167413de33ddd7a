#include "core/agent/waiter.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>

namespace tierd {
namespace {

constexpr uint64_t kLong = 60'000'000'000;  // a hang, if a wakeup is missing

class Signal {
 public:
  Signal() : fd_(eventfd(0, EFD_NONBLOCK)) {}
  ~Signal() { close(fd_); }
  int fd() const { return fd_; }
  void raise() const { ASSERT_EQ(eventfd_write(fd_, 1), 0); }
  void clear() const {
    eventfd_t count;
    ASSERT_EQ(eventfd_read(fd_, &count), 0);
  }

 private:
  int fd_;
};

TEST(Waiter, WakesForEachWatchedDescriptorAgainAndAgain) {
  Signal a, b;
  Waiter waiter;
  waiter.watch(a.fd());
  waiter.watch(b.fd());
  for (int i = 0; i < 50; ++i) {
    const Signal& signal = i % 3 == 0 ? a : b;
    std::thread other([&] { signal.raise(); });
    waiter.wait(kLong);  // may return early because of an earlier notification
    other.join();
    waiter.wait(kLong);
    signal.clear();
  }
}

TEST(Waiter, WhatIsReadableAlreadyDoesNotWait) {
  Signal a;
  Waiter waiter;
  waiter.watch(a.fd());
  a.raise();
  for (int i = 0; i < 10; ++i) waiter.wait(kLong);  // not yet read, so it does not block
}

TEST(Waiter, StopWakesAndStaysUntilForgotten) {
  Waiter waiter;
  EXPECT_FALSE(waiter.stopping());
  std::thread other([&] { waiter.stop(); });
  while (!waiter.stopping()) waiter.wait(kLong);
  other.join();
  waiter.wait(kLong);
  waiter.stop();
  waiter.clear_stop();
  EXPECT_FALSE(waiter.stopping());
  waiter.wait(1'000);  // returns by itself
  EXPECT_FALSE(waiter.stopping());
}

}  // namespace
}  // namespace tierd
