// Tests the passes of a trace as the kernel replays them.
#include "core/watch/trace/recorded_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/kernel/memory.h"
#include "tests/watch/trace/trace_world.h"

namespace tierd {
namespace {

using testing::ElementsAre;

using Neurons = std::vector<uint32_t>;

std::vector<float> scores_of(const ActiveSet& set) {
  if (set.scores() == nullptr) return {};
  return {set.scores(), set.scores() + set.size()};
}

TEST(RecordedSet, IsWhatWasActivatedWithItsScores) {
  const SiteTable sites = small_header().sites;
  const uint32_t n = sites[1].n;
  const auto again = [&](const ActiveSet& set) {
    const Activated recorded = activated_event(1, set);
    return recorded_set(&recorded, sites, 1, 1);
  };
  EXPECT_EQ(scores_of(again(ActiveSet::of({0, 2}, {}, {1, -4}))), (std::vector<float>{1, -4}));
  EXPECT_EQ(scores_of(again(ActiveSet::of({0, 2}))), std::vector<float>());
  const std::vector<float> of_all(n, 3);
  EXPECT_EQ(scores_of(again(ActiveSet::all(n, of_all))), of_all);
  EXPECT_TRUE(again(ActiveSet::all(n, of_all)).is_all());
}

TEST(RecordedSet, ScoresThatAreUnsoundAreNone) {
  const SiteTable sites = small_header().sites;
  for (const std::vector<float>& unsound : {std::vector<float>{1}, std::vector<float>{1, NAN}}) {
    const Activated recorded{1, Neurons{0, 2}, false, unsound};
    const ActiveSet set = recorded_set(&recorded, sites, 1, 1);
    EXPECT_EQ(set.size(), 2u);
    EXPECT_EQ(set.scores(), nullptr);
  }
}

TEST(RecordedWishes, HaveTheirScores) {
  const SiteTable sites = small_header().sites;
  RecordedWishes wishes(sites, Topology::over_store(1));
  const LookedAhead recorded{
      0, {{1, 1, Neurons{0, 2}, TIERD_NO_MEMORY, TIERD_NO_EDITION, {5, 6}}, {1, 1, Neurons{1}}}};
  const WishList& list = wishes.of(&recorded, 0);
  ASSERT_EQ(list.all().size(), 2u);
  EXPECT_THAT(list.scores(list.all()[0]), ElementsAre(5, 6));
  EXPECT_TRUE(list.scores(list.all()[1]).empty());
  EXPECT_EQ(looked_ahead_event(0, list), recorded);
}

}  // namespace
}  // namespace tierd
