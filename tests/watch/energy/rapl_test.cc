#include "core/watch/energy/rapl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/base/temp_folder.h"

namespace tierd {
namespace {

using testing::HasSubstr;

// A folder with the layout of /sys/class/powercap.
class Rapl : public testing::Test {
 protected:
  void zone(const std::string& name, const std::string& domain, const std::string& energy_uj,
            const std::string& most_uj = "1000000000") const {
    std::filesystem::create_directories(path(name));
    write(path(name) + "/name", domain);
    write(path(name) + "/max_energy_range_uj", most_uj);
    count(name, energy_uj);
  }
  void count(const std::string& name, const std::string& energy_uj) const {
    write(path(name) + "/energy_uj", energy_uj);
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string refused(std::string_view domain = "package") const {
    const FoundMeter meter = rapl_meter(folder_.path(), domain);
    return meter.ok() ? "" : meter.error().line();
  }
  static void write(const std::string& file, const std::string& line) { std::ofstream(file) << line << "\n"; }

  const TempFolder folder_;
};

TEST_F(Rapl, JoulesOfAllPackagesAndOfTheDramAtThem) {
  zone("intel-rapl:0", "package-0", "5000000");
  zone("intel-rapl:0:0", "core", "100");
  zone("intel-rapl:0:1", "dram", "700");
  zone("intel-rapl:1", "package-1", "9000000");
  zone("intel-rapl:2", "psys", "1");
  zone("intel-rapl-mmio:0", "package-0", "5000000");
  std::filesystem::create_directories(path("intel-rapl"));
  std::filesystem::create_directories(path("dtpm"));
  FoundMeter package = rapl_meter(folder_.path(), "package");
  FoundMeter dram = rapl_meter(folder_.path(), "dram");
  ASSERT_TRUE(package.ok()) << package.error().line();
  ASSERT_TRUE(dram.ok()) << dram.error().line();
  EXPECT_STREQ((*package)->name(), "RAPL");
  EXPECT_EQ((*package)->joules(), 0);
  count("intel-rapl:0", "6500000");
  count("intel-rapl:1", "9250000");
  count("intel-rapl:0:0", "900000000");
  count("intel-rapl-mmio:0", "6500000");
  count("intel-rapl:0:1", "2000700");
  EXPECT_DOUBLE_EQ(*(*package)->joules(), 1.75);
  EXPECT_DOUBLE_EQ(*(*dram)->joules(), 2);
}

TEST_F(Rapl, ACounterThatBeginsAnewGoesOn) {
  zone("intel-rapl:0", "package-0", "262143000000", "262143328850");
  FoundMeter meter = rapl_meter(folder_.path(), "package");
  ASSERT_TRUE(meter.ok()) << meter.error().line();
  count("intel-rapl:0", "671150");
  EXPECT_DOUBLE_EQ(*(*meter)->joules(), 1);
  count("intel-rapl:0", "1671150");
  EXPECT_DOUBLE_EQ(*(*meter)->joules(), 2);
  count("intel-rapl:0", "0");
  EXPECT_DOUBLE_EQ(*(*meter)->joules(), 2 + 262143.32885 - 1.67115);
}

TEST_F(Rapl, WhatIsNotThereIsSaid) {
  EXPECT_EQ(refused(), folder_.path() + ": RAPL counts no package here");
  EXPECT_EQ(rapl_meter(folder_.path() + "/none", "package").code(), Code::not_found);
  zone("intel-rapl:0", "package-0", "1");
  EXPECT_EQ(refused(), "");
  EXPECT_EQ(refused("dram"), folder_.path() + ": RAPL counts no dram here");
}

TEST_F(Rapl, WhatCannotBeReadIsNamed) {
  zone("intel-rapl:0", "package-0", "1");
  const std::string energy = path("intel-rapl:0") + "/energy_uj";
  std::filesystem::remove(energy);
  EXPECT_EQ(refused(), energy + ": cannot be read: No such file or directory");
  write(energy, "none of your business");
  EXPECT_EQ(refused(), energy + ": 'none of your business' is no number");
  write(energy, "-5");
  EXPECT_EQ(refused(), energy + ": '-5' is no number");
  std::ofstream(energy).flush();
  EXPECT_EQ(refused(), energy + ": is empty");
  write(energy, "99999999999999999999");
  EXPECT_THAT(refused(), HasSubstr("is no number"));
  write(energy, "1");
  std::filesystem::remove(path("intel-rapl:0") + "/max_energy_range_uj");
  EXPECT_THAT(refused(), HasSubstr("max_energy_range_uj: cannot be read"));
}

TEST_F(Rapl, WhoeverMayNotReadIsTold) {
  zone("intel-rapl:0", "package-0", "1");
  const std::string energy = path("intel-rapl:0") + "/energy_uj";
  ASSERT_EQ(::chmod(energy.c_str(), 0), 0);
  if (::access(energy.c_str(), R_OK) == 0) {
    // Root can read any file, but not a folder as a file.
    std::filesystem::remove(energy);
    std::filesystem::create_directories(energy);
    EXPECT_THAT(refused(), HasSubstr(energy + ": cannot be read: "));
    return;
  }
  EXPECT_EQ(refused(), energy + ": cannot be read: Permission denied");
}

TEST_F(Rapl, ACounterThatGoesAwayTellsNothingAnyMore) {
  zone("intel-rapl:0", "package-0", "1");
  FoundMeter meter = rapl_meter(folder_.path(), "package");
  ASSERT_TRUE(meter.ok()) << meter.error().line();
  std::filesystem::remove_all(path("intel-rapl:0"));
  EXPECT_FALSE((*meter)->joules().has_value());
}

}  // namespace
}  // namespace tierd
