#include "core/kernel/wish_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>

namespace tierd {
namespace {

using testing::ElementsAre;

tierd_wish wish_of(uint32_t site, const std::vector<uint32_t>& neurons) {
  return {
      sizeof(tierd_wish), TIERD_NO_MEMORY, site, 1, TIERD_NO_EDITION, static_cast<uint32_t>(neurons.size()),
      neurons.data(),     nullptr};
}

TEST(WishList, CopiesWhatIsWishedForWhileSomebodyAsks) {
  WishList list(4);
  std::vector<uint32_t> neurons = {1, 3};
  EXPECT_EQ(list.add(wish_of(2, neurons)), TIERD_E_INVALID);
  list.open();
  EXPECT_EQ(list.add(wish_of(2, neurons)), TIERD_OK);
  neurons = {0};
  EXPECT_EQ(list.add(wish_of(3, neurons)), TIERD_OK);
  tierd_wish all = wish_of(4, {});
  all.idx = nullptr;
  EXPECT_EQ(list.add(all), TIERD_OK);
  list.close();
  EXPECT_EQ(list.add(wish_of(2, neurons)), TIERD_E_INVALID);
  ASSERT_EQ(list.all().size(), 3u);
  EXPECT_THAT(list.neurons(list.all()[0]), ElementsAre(1, 3));
  EXPECT_THAT(list.neurons(list.all()[1]), ElementsAre(0));
  EXPECT_TRUE(list.all()[2].all);
  list.open();
  EXPECT_TRUE(list.empty());
}

// A plugin built before wishes had scores gives none.
TEST(WishList, CopiesScores) {
  WishList list(4);
  list.open();
  std::vector<uint32_t> neurons = {1, 3};
  std::vector<float> scores = {0.5F, -2};
  for (const uint32_t size : {uint32_t{sizeof(tierd_wish)}, uint32_t{offsetof(tierd_wish, score)}}) {
    tierd_wish wish = wish_of(2, neurons);
    wish.size = size;
    wish.score = scores.data();
    EXPECT_EQ(list.add(wish), TIERD_OK);
  }
  scores = {};
  EXPECT_THAT(list.scores(list.all()[0]), ElementsAre(0.5F, -2));
  EXPECT_TRUE(list.scores(list.all()[1]).empty());
  EXPECT_THAT(list.neurons(list.all()[1]), ElementsAre(1, 3));
}

TEST(WishList, NonsenseIsNotFollowed) {
  WishList list(4);
  list.open();
  // An impossible count is kept without reading the array; the caller checks it.
  tierd_wish huge = wish_of(1, {0});
  huge.n = UINT32_MAX;
  EXPECT_EQ(list.add(huge), TIERD_OK);
  EXPECT_EQ(list.all()[0].n, UINT32_MAX);
  tierd_wish older = wish_of(1, {0});
  older.size = offsetof(tierd_wish, score) - 1;
  EXPECT_EQ(list.add(older), TIERD_E_INVALID);
  int answer = TIERD_OK;
  uint32_t taken = 1;
  while ((answer = list.add(wish_of(1, {}))) == TIERD_OK) ++taken;
  EXPECT_EQ(answer, TIERD_E_NO_SPACE);
  EXPECT_EQ(taken, 4096u);
}

}  // namespace
}  // namespace tierd
