#include "tiers/flash/break_even.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "tests/flash/flash_world.h"

namespace tierd {
namespace {

TEST(BreakEven, IsMeasuredOnTheFileItself) {
  FlashWorld large({{.offset = 0, .bytes = 4096}}, uint64_t{9} << 20);
  const auto found = measure_break_even(large.path(), {.depth = 4});
  ASSERT_TRUE(found.ok()) << found.error().line();
  EXPECT_THAT(found->how, testing::StartsWith("measured: "));
  EXPECT_THAT(found->how, testing::HasSubstr("4 in flight"));
  EXPECT_TRUE(found->bytes == 0 || std::has_single_bit(found->bytes)) << found->bytes;
}

TEST(BreakEven, RefusesWhatItCannotMeasure) {
  FlashWorld small(1);
  const auto refused = measure_break_even(small.path(), {});
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_THAT(refused.error().line(), testing::HasSubstr("B, too few for a measurement"));
  EXPECT_FALSE(measure_break_even("/no/such/file", {}).ok());
}

}  // namespace
}  // namespace tierd
