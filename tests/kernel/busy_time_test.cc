#include "core/kernel/post/busy_time.h"

#include <gtest/gtest.h>

#include "core/base/random.h"

namespace tierd {
namespace {

TEST(BusyTime, CountsWhatOverlapsOnce) {
  BusyTime busy;
  EXPECT_EQ(busy.take(), 0u);
  busy.add(10, 20);
  busy.add(30, 40);
  EXPECT_EQ(busy.take(), 20u);
  EXPECT_EQ(busy.take(), 0u) << "taken once";
  busy.add(5, 10);   // in any order
  busy.add(0, 7);    // overlaps the first
  busy.add(1, 2);    // inside the others
  busy.add(10, 12);  // begins where the first ends
  busy.add(3, 3);    // has no length
  EXPECT_EQ(busy.take(), 12u);
}

TEST(BusyTime, IsWhatCountingEachMomentFinds) {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    BusyTime busy;
    std::vector<bool> at(64, false);
    for (uint32_t n = random.below(6); n > 0; --n) {
      const uint32_t begin = random.below(64);
      const uint32_t end = begin + random.below(64 - begin);
      busy.add(begin, end);
      std::fill(at.begin() + begin, at.begin() + end, true);
    }
    EXPECT_EQ(busy.take(), static_cast<uint64_t>(std::count(at.begin(), at.end(), true)));
  }
}

}  // namespace
}  // namespace tierd
