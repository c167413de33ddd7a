#include "core/agent/ring.h"

#include <gtest/gtest.h>

#include <thread>

namespace tierd {
namespace {

TEST(SpscRing, HoldsAtLeastItsCapacityInOrder) {
  for (const size_t capacity : {1u, 2u, 3u, 4u, 7u, 8u, 100u}) {
    SpscRing<int> ring(capacity);
    int value = 0;
    EXPECT_TRUE(ring.empty());
    EXPECT_FALSE(ring.pop(value));
    for (int lap = 0; lap < 3; ++lap) {
      int pushed = 0;
      while (ring.push(pushed)) ++pushed;
      EXPECT_GE(static_cast<size_t>(pushed), capacity);
      EXPECT_FALSE(ring.empty());
      for (int i = 0; i < pushed; ++i) {
        ASSERT_TRUE(ring.pop(value));
        EXPECT_EQ(value, i);
      }
      EXPECT_FALSE(ring.pop(value));
    }
  }
}

TEST(SpscRing, TwoThreads) {
  constexpr uint64_t kValues = 200'000;
  SpscRing<uint64_t> ring(7);
  std::thread producer([&] {
    for (uint64_t i = 0; i < kValues; ++i) {
      while (!ring.push(i)) std::this_thread::yield();
    }
  });
  for (uint64_t i = 0; i < kValues; ++i) {
    uint64_t value = 0;
    while (!ring.pop(value)) std::this_thread::yield();
    ASSERT_EQ(value, i);
  }
  producer.join();
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace tierd
