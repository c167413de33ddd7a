#include "core/kernel/post/task.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace tierd {
namespace {

Task<int> at_once(int value) {
  co_return value;
}

Task<std::string> inner(Notice& notice, std::string& log) {
  log += "a";
  co_await notice;
  log += "b";
  co_await notice;
  co_return "c";
}

Task<int> outer(Notice& notice, std::string& log) {
  const int one = co_await at_once(1);
  log += co_await inner(notice, log);
  co_return one + 1;
}

TEST(Task, StartsAtOnceAndGoesOnWhereItWaited) {
  EXPECT_EQ(at_once(7).take(), 7);
  Notice notice;
  std::string log;
  notice.notify();  // no task waits
  Task<int> task = outer(notice, log);
  EXPECT_EQ(log, "a");
  EXPECT_FALSE(task.done());
  EXPECT_TRUE(notice.awaited());
  notice.notify();
  EXPECT_EQ(log, "ab");
  notice.notify();
  EXPECT_EQ(log, "abc");
  ASSERT_TRUE(task.done());
  EXPECT_FALSE(notice.awaited());
  EXPECT_EQ(task.take(), 2);
}

TEST(Task, ADroppedOneIsDestroyedWhereItWaits) {
  Notice notice;
  const auto held = std::make_shared<int>(1);
  {
    const auto wait = [](Notice& n, std::shared_ptr<int> keep) -> Task<int> {
      co_await n;
      co_return *keep;
    };
    Task<int> task = wait(notice, held);
    EXPECT_EQ(held.use_count(), 2);
    EXPECT_DEATH((void)task.take(), "done");
  }
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Task, ManyInARowDoNotGrowTheStack) {
  Notice notice;
  int sum = 0;
  const auto loop = [](Notice&, int& total) -> Task<int> {
    for (int i = 0; i < 100'000; ++i) total += co_await at_once(1);
    co_return total;
  };
  EXPECT_EQ(loop(notice, sum).take(), 100'000);
}

}  // namespace
}  // namespace tierd
