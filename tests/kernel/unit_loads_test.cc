// Counts the neurons that units have computed, and how evenly they were loaded.
#include "core/kernel/pass/unit_loads.h"

#include <gtest/gtest.h>

#include "core/base/random.h"
#include "tests/kernel/scripted_world.h"

namespace tierd {
namespace {

constexpr uint32_t kWindow = 3;

// Three DIMMs and, as the last unit, a GPU.
Topology dimms_and_gpu() {
  Topology topology = Topology::over_store(4);
  for (Memory& memory : topology.memories) memory.name = "ndp";
  topology.memories.back().name = "gpu";
  return topology;
}

std::vector<UnitPass> pass(const std::vector<uint64_t>& neurons) {
  std::vector<UnitPass> units(neurons.size());
  for (size_t u = 0; u < units.size(); ++u) units[u].computed_neurons = neurons[u];
  return units;
}

TEST(UnitLoads, ImbalanceIsOfWholeWindowsAndOfOneTier) {
  UnitLoads loads(2, dimms_and_gpu(), kWindow);
  const auto add = [&](SiteId site, const std::vector<uint64_t>& neurons) {
    std::vector<UnitPass> units = pass(neurons);
    loads.add(site, units);
  };
  add(1, {4, 0, 0, 90});
  add(1, {0, 4, 0, 0});
  EXPECT_EQ(loads.sites()[1].tiers[0].windows, 0u) << "a window has three passes";
  add(1, {0, 0, 1, 0});
  // In each pass one DIMM computes everything; over the window 4, 4 and 1 have a mean of 3.
  EXPECT_EQ(loads.sites()[1].tiers[0].windows, 1u);
  EXPECT_DOUBLE_EQ(loads.sites()[1].tiers[0].imbalance(), 4.0 / 3);
  EXPECT_DOUBLE_EQ(loads.sites()[1].tiers[1].imbalance(), 1) << "one unit";
  for (int i = 0; i < 3; ++i) add(1, {0, 0, 0, 5});
  EXPECT_EQ(loads.sites()[1].tiers[0].windows, 1u) << "no DIMM computed in the second";
  for (int i = 0; i < 3; ++i) add(1, {2, 0, 0, 5});
  EXPECT_DOUBLE_EQ(loads.sites()[1].tiers[0].imbalance(), (4.0 / 3 + 3) / 2);
  EXPECT_EQ(loads.sites()[1].passes, 9u);
  EXPECT_EQ(loads.sites()[0].passes, 0u);
  EXPECT_EQ(loads.sites()[1].units[0].neurons, 10u);
}

TEST(UnitLoads, ThePassWaitsForTheSlowest) {
  UnitLoads loads(1, dimms_and_gpu(), kWindow);
  std::vector<UnitPass> units(4);
  units[0].busy.add(100, 130);
  units[1].busy.add(100, 120), units[1].busy.add(110, 150);
  units[3].busy.add(90, 97);
  loads.add(0, units);
  units.assign(4, {});
  units[2].busy.add(10, 15);
  loads.add(0, units);
  EXPECT_EQ(loads.sites()[0].tiers[0].slowest_ns, 50u + 5) << "of each pass, whichever unit it is";
  EXPECT_EQ(loads.sites()[0].tiers[1].slowest_ns, 7u);
  EXPECT_EQ(loads.sites()[0].units[0].ns, 30u);
  EXPECT_EQ(loads.sites()[0].units[1].ns, 50u);
}

// Random plans through the scheduler, compared with plain loops over these plans.
TEST(UnitLoads, CountWhatTheUnitsOfASchedulerCompute) {
  constexpr uint32_t kUnits = 3, kNeurons = 12, kPasses = 23, kOfOptions = 5;
  ScriptedWorld world({.neurons = {kNeurons}, .slots = {0}, .seed = 7, .units = kUnits});
  Random random(11);
  std::vector<uint64_t> whole(kUnits), window(kUnits);
  double imbalances = 0;
  uint64_t windows = 0;
  for (uint32_t p = 0; p < kPasses; ++p) {
    world.script.assign = [&](const tierd_set_view* set, uint8_t* unit) {
      for (uint32_t i = 0; i < set->n; ++i) {
        unit[i] = static_cast<uint8_t>(random.below(kUnits));
        ++whole[unit[i]], ++window[unit[i]];
      }
      return 0;
    };
    ASSERT_TRUE(world.pass(0, p).ok());
    if (p % kOfOptions != kOfOptions - 1) continue;
    ++windows;
    imbalances += static_cast<double>(std::ranges::max(window)) * kUnits / (kOfOptions * kNeurons);
    window.assign(kUnits, 0);
  }
  world.script.assign = nullptr;
  ASSERT_TRUE(world.pass(0, kPasses, {}, true).ok());
  const SiteLoad& load = world.scheduler->loads().sites()[0];
  EXPECT_EQ(load.passes, kPasses) << "a prompt is not counted";
  for (uint32_t u = 0; u < kUnits; ++u) EXPECT_EQ(load.units[u].neurons, whole[u]);
  ASSERT_EQ(load.tiers.size(), 1u);
  EXPECT_EQ(load.tiers[0].windows, windows);
  EXPECT_NEAR(load.tiers[0].imbalance(), imbalances / static_cast<double>(windows), 1e-12);
}

TEST(UnitLoads, OneUnitIsNotCounted) {
  ScriptedWorld world({.neurons = {4}, .slots = {0}});
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(world.scheduler->loads().sites()[0].passes, 0u);
}

}  // namespace
}  // namespace tierd
