#include "tiers/compute/team.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/sanitized.h"

namespace tierd {
namespace {

constexpr uint64_t kDear = 1'000'000'000;  // ns: always worth sharing

TEST(Team, CoversEverythingOnce) {
  for (const uint32_t workers : {1u, 2u, 3u, 5u}) {
    Team team({.workers = workers});
    EXPECT_EQ(team.workers(), workers);
    for (const uint64_t n : {0u, 1u, 2u, 3u, 7u, 16u, 100u, 1000u}) {
      for (const uint64_t grain : {0u, 1u, 2u, 7u, 100u, 5000u}) {
        for (const uint64_t cost : {uint64_t{0}, uint64_t{50'000}, kDear}) {
          std::vector<std::atomic<int>> times(n);
          std::atomic<int> pieces{0};
          std::atomic<bool> short_piece{false};
          team.run(n, grain, cost, [&](uint64_t begin, uint64_t end, uint32_t worker) {
            ASSERT_LT(worker, workers);
            ASSERT_LT(begin, end);
            ASSERT_LE(end, n);
            if (end - begin < grain && end != n) short_piece = true;
            for (uint64_t i = begin; i < end; ++i) ++times[i];
            ++pieces;
          });
          for (const auto& t : times) ASSERT_EQ(t.load(), 1);
          EXPECT_FALSE(short_piece.load());
          const bool alone = workers == 1 || cost == 0;
          EXPECT_LE(pieces.load(), alone ? 1 : static_cast<int>(n));
        }
      }
    }
  }
}

TEST(Team, OneLaunchAfterTheOther) {
  Team team({.workers = 2});
  uint64_t sums[2] = {};  // each worker's own
  for (int launch = 0; launch < 100'000; ++launch) {
    team.run(3, 1, kDear, [&](uint64_t begin, uint64_t end, uint32_t worker) {
      for (uint64_t i = begin; i < end; ++i) sums[worker] += i;
    });
  }
  EXPECT_EQ(sums[0] + sums[1], 300'000u);
  EXPECT_EQ(team.launches(), 100'000u);
}

TEST(Team, ParkedWorkersWake) {
  Team team({.workers = 3, .spin_ns = 0});
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // time to park; no result depends on it
    // Each piece waits until all three are taken, so different workers must take them.
    std::atomic<int> taken{0};
    team.run(3, 1, kDear, [&](uint64_t, uint64_t, uint32_t) {
      ++taken;
      while (taken.load() < 3) std::this_thread::yield();
    });
    EXPECT_EQ(taken.load(), 3);
  }
}

TEST(Team, EndsWhileItsWorkersParkOrSpin) {
  for (int round = 0; round < 100; ++round) {
    Team team({.workers = 3, .spin_ns = round % 2 == 0 ? 0u : 1'000'000u});
    if (round % 3 == 0) team.run(10, 1, kDear, [](uint64_t, uint64_t, uint32_t) {});
  }
}

// Threads that have started end, and the exception reaches the creator of the team.
TEST(TeamDeathTest, AThreadThatCannotBeHadIsAnException) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take terabytes of addresses";
  const auto make = [] {
    rlimit limit{};
    limit.rlim_cur = limit.rlim_max = rlim_t{200} << 20;
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(10);
    try {
      const Team team({.workers = 500});
    } catch (const std::system_error&) {
      std::_Exit(0);
    }
    std::_Exit(11);
  };
  EXPECT_EXIT(make(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tierd
