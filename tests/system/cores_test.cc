// Maps threads to the cores of described machines.
#include "core/system/cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwloc.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/system/cpu_quota.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Machine {
 public:
  explicit Machine(const std::string& described) {
    EXPECT_EQ(hwloc_topology_init(&topology_), 0);
    EXPECT_EQ(hwloc_topology_set_synthetic(topology_, described.c_str()), 0) << described;
    EXPECT_EQ(hwloc_topology_load(topology_), 0);
  }
  ~Machine() { hwloc_topology_destroy(topology_); }
  // Makes a range of units one kind of core. A larger efficiency means a faster core.
  void add_kind(unsigned first, unsigned last, int efficiency) const {
    const hwloc_bitmap_t units = hwloc_bitmap_alloc();
    hwloc_bitmap_set_range(units, first, static_cast<int>(last));
    EXPECT_EQ(hwloc_cpukinds_register(topology_, units, efficiency, 0, nullptr, 0), 0);
    hwloc_bitmap_free(units);
  }
  hwloc_topology_t topology() const { return topology_; }
  CoreMap map(const std::vector<uint32_t>& allowed = {}, std::optional<double> quota = {}) const {
    return map_cores(topology_, allowed, quota);
  }

 private:
  hwloc_topology_t topology_ = nullptr;
};

std::vector<uint32_t> units_of(const CoreMap& map) {
  std::vector<uint32_t> units;
  for (const CoreMap::Unit& unit : map.units) units.push_back(unit.os_index);
  return units;
}

TEST(Cores, OneThreadACoreThenItsSiblings) {
  const CoreMap map = Machine("core:4 pu:2").map();
  EXPECT_EQ(map.cores, 4u);
  EXPECT_EQ(map.threads, 4u);
  EXPECT_THAT(units_of(map), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  const CoreMap plain = Machine("core:3 pu:1").map();
  EXPECT_EQ(plain.threads, 3u);
  EXPECT_THAT(units_of(plain), ElementsAre(0, 1, 2));
}

TEST(Cores, TwoSocketsHaveTwoNodes) {
  const CoreMap map = Machine("pack:2 [numa] core:2 pu:2").map();
  EXPECT_EQ(map.threads, 4u);
  EXPECT_THAT(units_of(map), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_THAT(map.nodes_of(std::vector<uint32_t>{0, 1, 2, 3}), ElementsAre(0, 1));
  EXPECT_THAT(map.nodes_of(std::vector<uint32_t>{0, 1}), ElementsAre(0));
  EXPECT_THAT(map.nodes_of(std::vector<uint32_t>{2, 3}), ElementsAre(1));
  EXPECT_THAT(map.nodes_of(std::vector<uint32_t>{4, 5, 8}), ElementsAre(0))
      << "siblings of the first two cores";
  EXPECT_THAT(map.nodes_of({}), IsEmpty());
}

TEST(Cores, PerformanceCoresComeFirst) {
  // Four slow cores, which the system counts first, and two fast ones, with two units each.
  const Machine machine("core:6 pu:2");
  machine.add_kind(0, 7, 0);
  machine.add_kind(8, 11, 1);
  const CoreMap map = machine.map();
  EXPECT_EQ(map.threads, 6u);
  EXPECT_THAT(units_of(map), ElementsAre(8, 10, 0, 2, 4, 6, 9, 11, 1, 3, 5, 7));
  // The same for the machine described by a file.
  const std::string file = testing::TempDir() + "hybrid.xml";
  ASSERT_EQ(hwloc_topology_export_xml(machine.topology(), file.c_str(), 0), 0);
  hwloc_topology_t read = nullptr;
  ASSERT_EQ(hwloc_topology_init(&read), 0);
  ASSERT_EQ(hwloc_topology_set_xml(read, file.c_str()), 0);
  ASSERT_EQ(hwloc_topology_load(read), 0);
  EXPECT_THAT(units_of(map_cores(read, {}, {})), testing::ElementsAreArray(units_of(map)));
  hwloc_topology_destroy(read);
  std::filesystem::remove(file);
}

TEST(Cores, ACpusetLeavesWhatItLeaves) {
  const Machine machine("core:4 pu:2");
  const CoreMap one = machine.map({5});
  EXPECT_EQ(one.threads, 1u);
  EXPECT_THAT(units_of(one), ElementsAre(5));
  const CoreMap both_of_a_core = machine.map({2, 3});
  EXPECT_EQ(both_of_a_core.threads, 1u);
  EXPECT_THAT(units_of(both_of_a_core), ElementsAre(2, 3));
  EXPECT_EQ(machine.map({1, 3}).threads, 2u);
  EXPECT_EQ(machine.map({99}).threads, 1u) << "of none there is one";
}

TEST(Cores, AQuotaIsSharedByNoMoreThreadsThanItFeeds) {
  const Machine machine("core:4 pu:2");
  const auto threads = [&](double quota) { return machine.map({}, quota).threads; };
  EXPECT_EQ(threads(1.5), 1u);
  EXPECT_EQ(threads(1.9), 2u);
  EXPECT_EQ(threads(2), 2u);
  EXPECT_EQ(threads(0.2), 1u);
  EXPECT_EQ(threads(64), 4u);
  EXPECT_EQ(machine.map({5}, 3.0).threads, 1u);
}

TEST(CpuQuota, OfBothVersions) {
  const std::string folder = testing::TempDir() + "quota/";
  std::filesystem::create_directories(folder + "inner");
  const auto write = [&](const std::string& file, const std::string& text) {
    std::ofstream(folder + file) << text;
  };
  const auto quota = [&](bool v2) { return cpu_quota({folder, v2}); };
  EXPECT_EQ(quota(true), std::nullopt) << "no files";
  EXPECT_EQ(quota(false), std::nullopt);
  write("cpu.max", "max 100000\n");
  write("cpu.cfs_quota_us", "-1\n");
  write("cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(true), std::nullopt);
  EXPECT_EQ(quota(false), std::nullopt);
  write("cpu.max", "150000 100000\n");
  write("cpu.cfs_quota_us", "25000\n");
  EXPECT_EQ(quota(true), 1.5);
  EXPECT_EQ(quota(false), 0.25);
  std::filesystem::remove_all(folder);
}

TEST(Cores, ThisMachineHasSome) {
  const CoreMap& own = own_cores();
  EXPECT_GE(own.threads, 1u);
  EXPECT_LE(own.threads, own.cores);
  EXPECT_LE(own.cores, own.units.size());
  EXPECT_EQ(available_cores(), own.threads);
}

}  // namespace
}  // namespace tierd
