#include "core/base/units.h"

#include <gtest/gtest.h>

namespace tierd {
namespace {

TEST(Units, FormatsForPeople) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1500), "1.50 kB");
  EXPECT_EQ(format_bytes(3.75e9), "3.75 GB");
  EXPECT_EQ(format_bytes(64e6), "64.0 MB");
  EXPECT_EQ(format_rate(1.5e9), "1.50 GB/s");
  EXPECT_EQ(format_duration(0.012), "12 ms");
  EXPECT_EQ(format_duration(200), "3 min 20 s");
}

TEST(Units, ParsesSizes) {
  EXPECT_EQ(*parse_bytes("1000000", "k"), 1000000u);
  EXPECT_EQ(*parse_bytes("512 MiB", "k"), 512u << 20);
  EXPECT_EQ(*parse_bytes("1.5GB", "k"), 1500000000u);
  for (const char* bad : {"", "MiB", "-1", "5 parsecs", "1e30", "nan", "50%"}) {
    const auto r = parse_bytes(bad, "tiers.dram.capacity");
    ASSERT_FALSE(r.ok()) << bad;
    EXPECT_NE(r.error().line().find("tiers.dram.capacity"), std::string::npos);
  }
}

}  // namespace
}  // namespace tierd
