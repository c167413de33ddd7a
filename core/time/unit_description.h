// The devices beside the machine's processor: a table [units.NAME] of a description, named like the tier
// whose agents compute on it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "core/base/toml_fields.h"
#include "core/time/ddr4_timing.h"
#include "core/time/ndp_core.h"

namespace tierd {

// Bounds of a description, within which no virtual time computed from it overflows.
inline constexpr double kMostDescribed = 1e18;

struct GpuDescription {
  double memory_rate = 0;  // bytes a second
  double flops = 0;        // a second, f16, two for a multiply-add
  uint64_t launch_ns = 0;  // from the request of a run to its beginning
  double expand_rate = 0;  // expanded bytes of bitmaps a second after a move; 0: expansion takes no time
};

struct NdpDimmDescription {
  Ddr4Description dram;
  NdpCoreDescription core;
};

struct UnitDescription {
  uint32_t count = 0;  // number of devices; 0: as many as a configuration needs
  std::variant<GpuDescription, NdpDimmDescription> device;
};

// Reads a number of bytes or operations a second.
double rate(TomlFields& table, std::string_view key);
// Reads the units by the names of tiers. A description may have none.
std::map<std::string, UnitDescription> read_units(TomlFields units);

}  // namespace tierd
