#include <gtest/gtest.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tiers/compute/memory_bandwidth.h"
#include "tiers/flash/bandwidth.h"
#include "tools/tier/calibrate/machine.h"
#include "tools/tier/calibrate/scratch_file.h"

namespace tierd {
namespace {

Machine some_machine() {
  Machine machine = describe_machine();
  machine.host = "a \"quoted\"\\host";
  machine.device = "io_uring";
  machine.check_rate = 1.2e10;
  machine.copy_rate = 1.5e10;
  machine.thread_ns = 3400;
  machine.round = 85;
  machine.touch = {400, {180e-6, 250e-6}, {76e-6, 80e-6}};
  machine.reads = {
      {4096, 1, 5e7, 4e7}, {4096, 4, 1e8, 9e7}, {1 << 20, 1, 1e9, 1e9}, {1 << 20, 4, 2.0e9, 1.9e9}};
  machine.memory = {{1, 2e10}, {2, 3.5e10}};
  machine.kernels = "avx2";
  machine.kernel_threads = 2;
  machine.rates = {{Encoding::q4_0, true, 3e10, 2e11, 2.5e10, 2.8e10, 2.2e10},
                   {Encoding::q4_k, true, 3e10, 2e11}};
  return machine;
}

TEST(Calibrate, WritesTomlThatReadsBack) {
  const toml::table table = toml::parse(to_toml(some_machine()));
  EXPECT_EQ(table["machine"]["host"].value<std::string>(), "a \"quoted\"\\host");
  EXPECT_EQ(table["flash"]["latency_ns"].value<int64_t>(), 102400);  // 4096 B at 40 MB/s
  EXPECT_EQ(table["flash"]["bytes_per_second"].value<int64_t>(), 2'000'000'000);
  EXPECT_EQ(table["flash"]["read_bytes"].value<int64_t>(), 1 << 20);
  EXPECT_EQ(table["flash"]["depth"].value<int64_t>(), 4);
  EXPECT_EQ(table["flash"]["reads"].as_array()->size(), 4u);
  EXPECT_EQ(table["dram"]["bytes_per_second"].value<int64_t>(), 35'000'000'000);
  EXPECT_EQ(table["dram"]["reads"][1]["threads"].value<int64_t>(), 2);
  EXPECT_EQ(table["compute"]["kernels"].value<std::string>(), "avx2");
  EXPECT_EQ(table["compute"]["rates"][0]["encoding"].value<std::string>(), "q4_0");
}

// Virtual time uses the measured rates of the description.
TEST(Calibrate, WritesADescriptionOfAMachine) {
  const std::string path = testing::TempDir() + "calibrated-" + std::to_string(::getpid()) + ".toml";
  std::ofstream(path) << to_toml(some_machine());
  const auto machine = read_machine(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(machine.ok()) << machine.error().line();
  EXPECT_EQ(machine->disk.latency_ns, 102'400u);
  EXPECT_EQ(machine->disk.check_rate, 1.2e10);
  EXPECT_EQ(machine->disk.copy_rate, 1.5e10);
  EXPECT_EQ(machine->disk.thread_ns, 3400u);
  EXPECT_EQ(machine->disk.round, 85u);
  EXPECT_EQ(machine->processor.rate(Encoding::q4_0, true)->columns, 2.5e10);
  EXPECT_EQ(machine->processor.rate(Encoding::q4_0, true)->gemv_after_wait, 2.8e10);
  EXPECT_EQ(machine->processor.rate(Encoding::q4_0, true)->columns_after_wait, 2.2e10);
  EXPECT_EQ(machine->processor.rate(Encoding::q4_k, true)->columns, 0);
  EXPECT_EQ(machine->disk.reads.points().back().bytes_per_second, 1.9e9);
  EXPECT_EQ(machine->processor.memory_rate, 3.5e10);
  EXPECT_EQ(machine->processor.rate(Encoding::q4_0, true)->gemv, 3e10);
}

TEST(Calibrate, LeanestIsNearlyTheFastestWithLessInFlight) {
  Machine machine;
  machine.reads = {{1 << 18, 4, 1.8e9, 1}, {1 << 20, 4, 1.95e9, 1}, {1 << 20, 64, 2e9, 1}};
  EXPECT_EQ(fastest(machine).depth, 64u);
  EXPECT_EQ(leanest(machine).read_bytes * leanest(machine).depth, 4u << 20);
}

TEST(Calibrate, TableFitsAScreen) {
  const std::string table = to_table(some_machine());
  EXPECT_LT(std::ranges::count(table, '\n'), 24);
  EXPECT_NE(table.find("1 MiB x 4 come within 5 %"), std::string::npos) << table;
  EXPECT_NE(table.find("one read of 16 KiB alone: 180 us (mean 250) for the first time, 76 us "
                       "(mean 80) again\n"),
            std::string::npos)
      << table;
  EXPECT_NE(to_toml(some_machine()).find("# one read of 16 KiB alone: 180 us"), std::string::npos);
}

TEST(Calibrate, ScratchFileHasNoNameAndCanBeMeasured) {
  const std::string folder = testing::TempDir() + "/calibrate_" + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  const auto scratch = make_scratch_file(folder, uint64_t{5} << 20, true);
  ASSERT_TRUE(scratch.ok()) << scratch.error().line();
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  const auto rate = measure_read(scratch->path(), {.read_bytes = 65536, .depth = 4, .seconds = 0.01});
  EXPECT_TRUE(rate.ok()) << rate.error().line();
  const auto round = measure_round(scratch->path());
  ASSERT_TRUE(round.ok()) << round.error().line();
  EXPECT_GE(*round, 1u);
  EXPECT_LE(*round, 256u);
  const auto touch = measure_touch(scratch->path(), 1);
  ASSERT_TRUE(touch.ok()) << touch.error().line();
  EXPECT_GE(touch->reads, 320u);  // of 16 KiB
  for (const TouchLatency::Pass& pass : {touch->first, touch->again}) {
    EXPECT_GT(pass.median, 0);
    EXPECT_GT(pass.mean, 0);
  }
  std::filesystem::remove(folder);
}

TEST(Calibrate, ATouchNeedsAFileOfOneRead) {
  EXPECT_EQ(measure_touch("/no/such/file", 1).code(), Code::not_found);
  const std::string path = testing::TempDir() + "small-" + std::to_string(::getpid());
  std::ofstream(path) << std::string(4096, 'x');
  const auto small = measure_touch(path, 1);
  std::filesystem::remove(path);
  ASSERT_FALSE(small.ok());
  EXPECT_TRUE(small.code() == Code::invalid_argument || small.code() == Code::io_error)
      << small.error().line();
}

TEST(Calibrate, ScratchFileNamesTheFolderThatRefuses) {
  const auto missing = make_scratch_file("/no/such/folder", 1 << 20, true);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().line().find("/no/such/folder"), std::string::npos);
  EXPECT_FALSE(make_scratch_file(testing::TempDir(), uint64_t{1} << 60, true).ok());
}

TEST(MemoryRead, MeasuresWithAnyNumberOfThreads) {
  for (const uint32_t threads : {1, 3}) {
    const auto rate = measure_memory_read(threads, 0.01, uint64_t{8} << 20);
    ASSERT_TRUE(rate.ok());
    EXPECT_GT(*rate, 0);
  }
}

// Reads pieces of 2 MiB, whatever their places.
TEST(MemoryRead, OfWhatIsThere) {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  const std::vector<Line> lines((5u << 20) / sizeof(Line));
  const auto all = std::as_bytes(std::span(lines));
  const std::span<const std::byte> some[] = {all.first(3u << 20), all.subspan(3u << 20, 1u << 20),
                                             all.last(2u << 20)};
  const auto rate = measure_memory_read(2, 0.01, some);
  ASSERT_TRUE(rate.ok());
  EXPECT_GT(*rate, 0);
  EXPECT_EQ(measure_memory_read(3, 0.01, some).code(), Code::invalid_argument);
}

}  // namespace
}  // namespace tierd
