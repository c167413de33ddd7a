#include "core/watch/energy/energy_text.h"

#include <gtest/gtest.h>

namespace tierd {
namespace {

TEST(EnergyText, ThreeDigitsAndAUnit) {
  EXPECT_EQ(format_joules(0), "0 mJ");
  EXPECT_EQ(format_joules(0.0123), "12.3 mJ");
  EXPECT_EQ(format_joules(0.99949), "999 mJ");
  EXPECT_EQ(format_joules(0.9996), "1 J");
  EXPECT_EQ(format_joules(1.234), "1.23 J");
  EXPECT_EQ(format_joules(3.6e6), "3.6 MJ");
  EXPECT_EQ(format_joules(7.2e13), "7.2e+04 GJ");
  EXPECT_EQ(format_grams(0.000'512), "0.512 mg");
  EXPECT_EQ(format_grams(4.2), "4.2 g");
  EXPECT_EQ(format_grams(1500), "1.5 kg");
}

}  // namespace
}  // namespace tierd
