#include "tiers/flash/bounce_gain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/flash/flash_world.h"

namespace tierd {
namespace {

TEST(BounceGain, IsWorthItBeyondWhatMeasurementsVary) {
  const auto worth = [](double direct, double bounced) {
    return BounceGain{.direct_bytes_per_second = direct, .bounced_bytes_per_second = bounced}.worth_it();
  };
  EXPECT_TRUE(worth(1.4e9, 2.2e9));
  EXPECT_FALSE(worth(2.2e9, 2.3e9));
  EXPECT_FALSE(worth(2.2e9, 1.4e9));
}

TEST(BounceGain, IsMeasuredOnTheFileItself) {
  FlashWorld large({{.offset = 0, .bytes = 4096}}, uint64_t{9} << 20);
  const auto found = measure_bounce_gain(large.path(), {.depth = 4}, uint64_t{64} << 20);
  ASSERT_TRUE(found.ok()) << found.error().line();
  EXPECT_GT(found->direct_bytes_per_second, 0);
  EXPECT_GT(found->bounced_bytes_per_second, 0);
  EXPECT_THAT(found->how, testing::StartsWith("measured: "));
  EXPECT_THAT(found->how, testing::HasSubstr("4 in flight"));
}

TEST(BounceGain, RefusesWhatItCannotMeasure) {
  FlashWorld small(1);
  const auto cached = measure_bounce_gain(small.path(), {}, uint64_t{63} << 20);
  EXPECT_EQ(cached.code(), Code::invalid_argument);
  EXPECT_THAT(cached.error().line(), testing::HasSubstr("stays in caches"));
  const auto short_file = measure_bounce_gain(small.path(), {.depth = 4096}, uint64_t{1} << 30);
  EXPECT_THAT(short_file.error().line(), testing::HasSubstr("B, too few for a measurement"));
  EXPECT_FALSE(measure_bounce_gain("/no/such/file", {}, uint64_t{1} << 30).ok());
}

}  // namespace
}  // namespace tierd
