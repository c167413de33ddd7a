// What computes beside the machine's processor: a table [units.NAME] of a description, by the name of the
// tier whose agents compute on it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "core/time/ddr4_timing.h"
#include "core/time/described_numbers.h"
#include "core/time/ndp_core.h"

namespace tierd {

struct GpuDescription {
  double memory_rate = 0;  // bytes a second
  double flops = 0;        // a second, of f16, two for a multiply-add
  uint64_t launch_ns = 0;  // of each run, from asking for it to its beginning
  double expand_rate = 0;  // bytes a second that bitmaps become behind a move; 0: that takes no time
};

struct NdpDimmDescription {
  Ddr4Description dram;
  NdpCoreDescription core;
};

struct UnitDescription {
  uint32_t count = 0;  // so many there are; 0: as many as a configuration asks for
  std::variant<GpuDescription, NdpDimmDescription> device;
};

// By the names of tiers. A description may have none.
std::map<std::string, UnitDescription> read_units(DescribedNumbers& numbers,
                                                  const DescribedNumbers::View& units);

}  // namespace tierd
