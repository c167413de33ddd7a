#include "tools/measurement/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Summary, MedianAndRange) {
  const Summary odd = summarize({3, 1, 10});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.least, 1);
  EXPECT_EQ(odd.most, 10);
  EXPECT_EQ(odd.count, 3u);
  EXPECT_EQ(summarize({4, 1, 3, 2}).median, 2.5);
  EXPECT_EQ(summarize({7}).median, 7);
}

TEST(Summary, NothingIsZero) {
  EXPECT_EQ(summarize({}).median, 0);
  EXPECT_EQ(summarize({}).count, 0u);
}

TEST(Strays, AreThoseOffTheMedianByMoreThanTheTolerance) {
  EXPECT_THAT(find_strays({{2.0}, {2.1}, {1.5}, {1.9}, {2.6}}, 0.2), ElementsAre(2u, 4u));
  EXPECT_THAT(find_strays({{2.0}, {2.3}, {1.7}}, 0.2), IsEmpty());
}

TEST(Strays, OneBadHalfOfARoundIsEnough) {
  EXPECT_THAT(find_strays({{2.0, 2.0}, {2.0, 1.0}, {2.1, 2.0}}, 0.2), ElementsAre(1u));
}

TEST(Strays, WithoutADiskThereAreNone) {
  EXPECT_THAT(find_strays({{}, {}, {}}, 0.2), IsEmpty());
}

}  // namespace
}  // namespace tierd
