#include "tiers/flash/break_even.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/flash/flash_world.h"

namespace tierd {
namespace {

TEST(BreakEven, IsWhatARequestCostsInBytes) {
  // 10 µs a request and 2 GB/s.
  const auto seconds = [](double bytes) { return 10e-6 + bytes / 2e9; };
  const BreakEven found = break_even(4096, seconds(4096), 131072, seconds(131072));
  EXPECT_NEAR(found.request_seconds, 10e-6, 1e-12);
  EXPECT_NEAR(found.bytes_per_second, 2e9, 1);
  EXPECT_NEAR(static_cast<double>(found.bytes), 20000, 1);
}

TEST(BreakEven, IsNothingWhereTheMeasurementSaysNothing) {
  EXPECT_EQ(break_even(4096, 2e-6, 131072, 2e-6).bytes, 0u);
  EXPECT_EQ(break_even(4096, 3e-6, 131072, 2e-6).bytes, 0u);
  EXPECT_EQ(break_even(4096, 1e-6, 131072, 1e-3).bytes, 0u);  // more than in proportion
}

TEST(BreakEven, IsMeasuredOnTheFileItself) {
  FlashWorld large({{.offset = 0, .bytes = 4096}}, uint64_t{9} << 20);
  const auto found = measure_break_even(large.path(), {.depth = 4});
  ASSERT_TRUE(found.ok()) << found.error().line();
  EXPECT_THAT(found->how, testing::StartsWith("measured: "));
  EXPECT_THAT(found->how, testing::HasSubstr("4 in flight"));
}

TEST(BreakEven, RefusesWhatItCannotMeasure) {
  FlashWorld small(1);
  const auto refused = measure_break_even(small.path(), {});
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_THAT(refused.error().line(), testing::HasSubstr("too few to measure"));
  EXPECT_FALSE(measure_break_even("/no/such/file", {}).ok());
}

}  // namespace
}  // namespace tierd
