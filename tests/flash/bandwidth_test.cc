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
}

TEST(Bandwidth, ReadsLandInMemoryOfAGivenSize) {
  FlashWorld world(1);
  ReadPattern pattern{.read_bytes = 8192, .depth = 4, .random = true, .seconds = 0.01};
  pattern.memory_bytes = 10 * 8192 + 1;
  const auto rate = measure_read(world.path(), pattern);
  ASSERT_TRUE(rate.ok()) << rate.error().line();
  EXPECT_GT(rate->bytes_per_second, 0);
}

TEST(Bandwidth, SpreadPartsLieAllOverTheFile) {
  const std::string large = testing::TempDir() + "/bandwidth_large_" + std::to_string(::getpid());
  std::ofstream(large).flush();
  std::filesystem::resize_file(large, uint64_t{600} << 20);
  const auto parts = spread_parts(large, uint64_t{600} << 20);
  const auto refused = spread_parts(large, uint64_t{601} << 20);
  std::filesystem::remove(large);
  ASSERT_TRUE(parts.ok()) << parts.error().line();
  ASSERT_EQ(parts->size(), 256u);
  for (uint64_t i = 0; i < parts->size(); ++i) {
    EXPECT_EQ((*parts)[i].offset >> 21, i);  // one in each 2 MiB
    EXPECT_EQ((*parts)[i].offset % (uint64_t{1} << 20), 0u);
  }
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_EQ(spread_parts("/no/such/file", 0).code(), Code::io_error);
}

TEST(Bandwidth, SequentialRunsGoOnWhereTheLastStopped) {
  FlashWorld world(1);
  const auto rate = measure_read(world.path(), {.read_bytes = 4096, .depth = 2, .seconds = 0}, 5);
  ASSERT_TRUE(rate.ok());
  EXPECT_EQ(rate->first, 7u);
}

TEST(Bandwidth, ReadsThePartsInTheirOrderAndAgain) {
  FlashWorld world(1);
  // Two reads of the first part, the second one shorter, and one read of the other part.
  const std::vector<FileRange> parts = {{8192, 12288}, {0, 4096}};
  const auto rate =
      measure_read(world.path(), {.read_bytes = 8192, .depth = 4, .seconds = 0, .parts = parts}, 2);
  ASSERT_TRUE(rate.ok()) << rate.error().line();
  EXPECT_EQ(rate->first, 0u);  // the third, then the first to the third again
}

TEST(Bandwidth, RefusesWhatItCannotMeasure) {
  FlashWorld world(1);
  for (const FileRange part : {FileRange{1, 4096}, FileRange{0, 100}, FileRange{uint64_t{1} << 40, 4096},
                               FileRange{0, uint64_t{1} << 40}, FileRange{0, 0}}) {
    EXPECT_EQ(measure_read(world.path(), {.read_bytes = 4096, .parts = {part}}).code(),
              Code::invalid_argument);
  }
  EXPECT_EQ(measure_read(world.path(), {.read_bytes = 1000}).code(), Code::invalid_argument);
  EXPECT_EQ(measure_read(world.path(), {.read_bytes = uint64_t{1} << 30}).code(), Code::invalid_argument);
  EXPECT_EQ(measure_read(world.path(), {.read_bytes = 4096, .memory_bytes = uint64_t{1} << 40}).code(),
            Code::invalid_argument);
  EXPECT_EQ(measure_read("/no/such/file", {}).code(), Code::not_found);
  const std::string tiny = testing::TempDir() + "/bandwidth_tiny_" + std::to_string(::getpid());
  std::ofstream(tiny) << "less than one block";
  EXPECT_EQ(measure_read(tiny, {}).code(), Code::invalid_argument);
  std::filesystem::remove(tiny);
  const std::string sparse = testing::TempDir() + "/bandwidth_sparse_" + std::to_string(::getpid());
  std::ofstream(sparse).flush();
  std::filesystem::resize_file(sparse, 1 << 20);
  const auto refused = measure_read(sparse, {});
  std::filesystem::remove(sparse);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().line().find("holes"), std::string::npos);
}

}  // namespace
}  // namespace tierd
