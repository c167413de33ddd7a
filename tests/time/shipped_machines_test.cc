// Every file of configs/hardware is a machine for virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/time/machine.h"

namespace tierd {
namespace {

TEST(ShippedMachines, AreAllRead) {
  const std::vector<std::string> names = toml_names(machines_folder());
  EXPECT_THAT(names, testing::IsSupersetOf({"rtx3090-box", "m1-max", "rtx4090-8ndp"}));
  for (const std::string& name : names) {
    const auto machine = read_machine(name);
    EXPECT_TRUE(machine.ok()) << machine.error().line();
  }
}

// The rates that REPRODUCTION, section 5, infers for a DIMM of Hermes, for any number of DIMMs.
TEST(ShippedMachines, DimmsOfHermesReadAndMultiplyAsInferred) {
  for (const uint32_t count : {1, 2, 4, 8, 16}) {
    const auto machine = read_machine("rtx4090-" + std::to_string(count) + "ndp");
    ASSERT_TRUE(machine.ok()) << machine.error().line();
    ASSERT_NE(machine->unit("ndp"), nullptr);
    EXPECT_EQ(machine->unit("ndp")->count, count);
    const auto& dimm = std::get<NdpDimmDescription>(machine->unit("ndp")->device);
    EXPECT_DOUBLE_EQ(dimm.dram.streaming_rate(), 102.4e9);
    EXPECT_DOUBLE_EQ(dimm.core.multiply_adds(), 128e9);
    EXPECT_EQ(machine->link("ndp", "ndp")->rate, 25e9);
  }
}

}  // namespace
}  // namespace tierd
