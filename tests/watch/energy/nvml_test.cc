#include "core/watch/energy/nvml.h"

#include <gtest/gtest.h>

namespace tierd {
namespace {

// A driver with `gpus` GPUs, the first of which reports a consumption.
struct Driver {
  int init = 0;
  unsigned gpus = 1;
  int energy = 0;
  unsigned long long millijoules = 0;
};
Driver the_driver;
int the_gpu = 0;

NvmlLibrary library() {
  NvmlLibrary double_of_it;
  double_of_it.init = [] { return the_driver.init; };
  double_of_it.device_count = [](unsigned* count) { return *count = the_driver.gpus, 0; };
  double_of_it.device_by_index = [](unsigned index, void** device) {
    *device = &the_gpu;
    return index == 0 ? 0 : 2;
  };
  double_of_it.total_energy = [](void* device, unsigned long long* millijoules) {
    EXPECT_EQ(device, &the_gpu);
    *millijoules = the_driver.millijoules;
    return the_driver.energy;
  };
  return double_of_it;
}

std::string refused(const Driver& driver) {
  the_driver = driver;
  const FoundMeter meter = nvml_meter(library());
  return meter.ok() ? "" : meter.error().line();
}

TEST(Nvml, JoulesOfTheOneGpu) {
  the_driver = {.millijoules = 4'000'000'000'250};
  FoundMeter meter = nvml_meter(library());
  ASSERT_TRUE(meter.ok()) << meter.error().line();
  EXPECT_STREQ((*meter)->name(), "NVML");
  const double begin = *(*meter)->joules();
  the_driver.millijoules += 350'500;
  EXPECT_NEAR(*(*meter)->joules() - begin, 350.5, 1e-6);
  the_driver.energy = 3;
  EXPECT_FALSE((*meter)->joules().has_value());
}

TEST(Nvml, WhyThereIsNoMeter) {
  EXPECT_EQ(refused({.init = 9}), "NVML: knows of no GPU");
  EXPECT_EQ(refused({.gpus = 0}), "NVML: knows of no GPU");
  EXPECT_EQ(refused({.gpus = 2}), "NVML: knows of 2 GPUs, and not which of them the run has");
  EXPECT_EQ(refused({.energy = 3}), "NVML: this GPU does not count what it draws");
}

// The machine may lack the library. If it has the library, the functions are there.
TEST(Nvml, TheLibraryIsLoadedWhereItIsThere) {
  const auto loaded = load_nvml();
  if (!loaded.ok()) {
    EXPECT_EQ(loaded.code(), Code::not_found);
    EXPECT_EQ(loaded.error().origin, "libnvidia-ml.so.1");
    return;
  }
  EXPECT_NE(loaded->total_energy, nullptr);
}

}  // namespace
}  // namespace tierd
