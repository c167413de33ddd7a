#include "core/system/memory_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class MemoryLimits : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    const std::string path = root_ + "/" + file;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  }
  ControlGroup group(const std::string& path, bool v2) const {
    return {root_ + (path.empty() ? "" : "/" + path), v2, root_};
  }
  const std::string root_ = testing::TempDir() + "memory-limits";
};

// Returns "SOURCE BYTES".
std::vector<std::string> lines(const MemoryFacts& facts) {
  std::vector<std::string> lines;
  for (const MemoryLimit& limit : memory_limits(facts))
    lines.push_back(limit.source + " " + std::to_string(limit.left_bytes));
  return lines;
}

TEST_F(MemoryLimits, OfTheMachineAndOfUlimit) {
  MemoryFacts facts;
  EXPECT_THAT(lines(facts), IsEmpty());
  facts.meminfo = "MemTotal:  24684084 kB\nMemAvailable:\t 23014876 kB\nBuffers: 1 kB\n";
  facts.status = "Name:\ttierd\nVmPeak:\t 9999 kB\nVmSize:\t 100 kB\nVmData:\t 40 kB\n";
  EXPECT_THAT(lines(facts), ElementsAre("this machine (MemAvailable) 23567233024"));
  facts.address_space = 1'000'000;
  facts.data = 10'000;
  EXPECT_THAT(lines(facts),
              ElementsAre("this machine (MemAvailable) 23567233024", "ulimit -v 897600", "ulimit -d 0"));
}

TEST_F(MemoryLimits, WhatIsNoNumberIsNoLimit) {
  MemoryFacts facts;
  facts.meminfo = "MemAvailable: many kB\n";
  EXPECT_THAT(lines(facts), IsEmpty());
  facts.meminfo = "MemAvailable: 18446744073709551615 kB\n";
  EXPECT_THAT(lines(facts), IsEmpty());
  facts.meminfo = "MemAvailable:";
  EXPECT_THAT(lines(facts), IsEmpty());
}

// File pages are reclaimable, except those that are dirty or being written back.
TEST_F(MemoryLimits, OfGroupsOfVersion1) {
  write("jobs/7/memory.limit_in_bytes", "1000\n");
  write("jobs/7/memory.usage_in_bytes", "900\n");
  write(
      "jobs/7/memory.stat",
      "active_file 1\ntotal_inactive_file 300\ntotal_active_file 100\ntotal_dirty 40\ntotal_writeback 10\n");
  write("jobs/memory.limit_in_bytes", "2000\n");
  write("jobs/memory.usage_in_bytes", "1950\n");
  write("jobs/memory.stat", "total_inactive_file 10\n");
  write("memory.limit_in_bytes", "9223372036854771712\n");
  write("memory.usage_in_bytes", "7\n");
  const auto above = with_those_above(group("jobs/7", false));
  ASSERT_EQ(above.size(), 3u);
  EXPECT_EQ(above[1].directory, root_ + "/jobs");
  EXPECT_EQ(above[2].directory, root_);
  MemoryFacts facts;
  facts.groups = above;
  EXPECT_THAT(lines(facts),
              ElementsAre("the cgroup " + root_ + "/jobs/7 450", "the cgroup " + root_ + "/jobs 60"));
}

TEST_F(MemoryLimits, OfGroupsOfVersion2) {
  write("a/memory.max", "1000\n");
  write("a/memory.high", "max\n");
  write("a/memory.current", "1500\n");
  write("a/memory.stat", "inactive_file 100\nactive_file 600\nfile_dirty 50\nfile_writeback 0\n");
  EXPECT_EQ(left_bytes(group("a", true)), 150u);
  write("a/memory.high", "900\n");
  EXPECT_EQ(left_bytes(group("a", true)), 50u);
  write("a/memory.max", "max\n");
  EXPECT_EQ(left_bytes(group("a", true)), 50u);
  write("a/memory.high", "max\n");
  EXPECT_EQ(left_bytes(group("a", true)), std::nullopt);
  write("a/memory.max", "10\n");
  EXPECT_EQ(left_bytes(group("a", true)), 0u) << "it is over already";
  EXPECT_EQ(left_bytes(group("b", true)), std::nullopt) << "there is no such group";
}

TEST_F(MemoryLimits, AGroupThatIsTheMountHasNoneAbove) {
  EXPECT_EQ(with_those_above(group("", true)).size(), 1u);
}

TEST_F(MemoryLimits, ThisProcessHasOne) {
  const std::vector<MemoryLimit> limits = memory_limits();
  ASSERT_FALSE(limits.empty());
  EXPECT_GT(limits.front().left_bytes, 0u) << limits.front().source;
  EXPECT_LT(limits.front().left_bytes, uint64_t{1} << 50) << limits.front().source;
}

}  // namespace
}  // namespace tierd
