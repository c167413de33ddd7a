#include "tiers/flash/bandwidth.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/flash/flash_world.h"

namespace tierd {
namespace {

TEST(Bandwidth, MeasuresBothPatternsOnBothDevices) {
  FlashWorld world(1);
  for (const DeviceKind kind : {DeviceKind::io_uring, DeviceKind::pread}) {
    for (const bool random : {false, true}) {
      const auto rate = measure_read(
          world.path(), {.read_bytes = 8192, .depth = 4, .random = random, .seconds = 0.01, .kind = kind});
      ASSERT_TRUE(rate.ok()) << rate.error().line();
      EXPECT_GT(rate->bytes_per_second, 0);
      EXPECT_EQ(rate->device, kind == DeviceKind::pread ? "pread" : "io_uring");
    }
  }
  EXPECT_TRUE(measure_sequential_read(world.path(), 0.01, 4096, 2).ok());
}

TEST(Bandwidth, SequentialRunsGoOnWhereTheLastStopped) {
  FlashWorld world(1);
  const auto rate = measure_read(world.path(), {.read_bytes = 4096, .depth = 2, .seconds = 0}, 5);
  ASSERT_TRUE(rate.ok());
  EXPECT_EQ(rate->first, 7u);
}

TEST(Bandwidth, RefusesWhatItCannotMeasure) {
  FlashWorld world(1);
  EXPECT_EQ(measure_sequential_read(world.path(), 0.01, 1000, 1).code(), Code::invalid_argument);
  EXPECT_EQ(measure_sequential_read(world.path(), 0.01, uint64_t{1} << 30, 1).code(), Code::invalid_argument);
  EXPECT_EQ(measure_sequential_read("/no/such/file", 0.01, 4096, 1).code(), Code::not_found);
  const std::string sparse = testing::TempDir() + "/bandwidth_sparse_" + std::to_string(::getpid());
  std::ofstream(sparse).flush();
  std::filesystem::resize_file(sparse, 1 << 20);
  const auto refused = measure_sequential_read(sparse, 0.01, 4096, 1);
  std::filesystem::remove(sparse);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().line().find("holes"), std::string::npos);
}

}  // namespace
}  // namespace tierd
