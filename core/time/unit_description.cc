#include "core/time/unit_description.h"

#include <fmt/format.h>

namespace tierd {
namespace {

constexpr double kLeastRate = 1e3;  // bytes or operations a second
constexpr uint32_t kMostCount = 1024;
constexpr uint32_t kMostParts = 64;  // ranks, bank groups, banks
constexpr uint32_t kMostRowBytes = 1u << 20;
constexpr uint32_t kMostCycles = 65536;
constexpr uint32_t kMostOfCore = 1u << 20;  // multipliers, lanes, operations of a cycle
constexpr uint32_t kMostBufferBytes = 1u << 30;

uint32_t cycles(TomlFields& unit, std::string_view key) {
  return unit.whole(key, 1, kMostCycles);
}

GpuDescription read_gpu(TomlFields& unit) {
  GpuDescription gpu{.memory_rate = rate(unit, "bytes_per_second"),
                     .flops = rate(unit, "flops"),
                     .launch_ns = static_cast<uint64_t>(unit.number("launch_ns", 0, kMostDescribed))};
  if (unit.has("expand_bytes_per_second")) gpu.expand_rate = rate(unit, "expand_bytes_per_second");
  unit.end();
  return gpu;
}

Ddr4Description read_dram(TomlFields dram) {
  const Ddr4Description described{.ranks = dram.whole("ranks", 1, kMostParts),
                                  .bank_groups = dram.whole("bank_groups", 1, kMostParts),
                                  .banks_per_group = dram.whole("banks_per_group", 1, kMostParts),
                                  .row_bytes = dram.whole("row_bytes", kDdr4BurstBytes, kMostRowBytes),
                                  .clock_hz = rate(dram, "clock_hz"),
                                  .rc = cycles(dram, "t_rc"),
                                  .rcd = cycles(dram, "t_rcd"),
                                  .cl = cycles(dram, "t_cl"),
                                  .rp = cycles(dram, "t_rp"),
                                  .bl = cycles(dram, "t_bl"),
                                  .ccd_s = cycles(dram, "t_ccd_s"),
                                  .ccd_l = cycles(dram, "t_ccd_l"),
                                  .rrd_s = cycles(dram, "t_rrd_s"),
                                  .rrd_l = cycles(dram, "t_rrd_l"),
                                  .faw = cycles(dram, "t_faw")};
  dram.end();
  if (described.row_bytes % kDdr4BurstBytes != 0)
    dram.fail("row_bytes", fmt::format("is {}; a multiple of the burst of {} is expected",
                                       described.row_bytes, kDdr4BurstBytes));
  return described;
}

NdpCoreDescription read_core(TomlFields core) {
  const NdpCoreDescription described{.clock_hz = rate(core, "clock_hz"),
                                     .multipliers = core.whole("multipliers", 1, kMostOfCore),
                                     .lanes = core.whole("lanes", 1, kMostOfCore),
                                     .cycles_per_product = cycles(core, "cycles_per_product"),
                                     .buffer_bytes = core.whole("buffer_bytes", 1, kMostBufferBytes),
                                     .exponentials = core.whole("exponentials", 1, kMostOfCore),
                                     .additions = core.whole("additions", 1, kMostOfCore),
                                     .multiplications = core.whole("multiplications", 1, kMostOfCore)};
  core.end();
  return described;
}

UnitDescription read_unit(TomlFields unit) {
  UnitDescription described;
  const std::string kind = unit.text("kind");
  unit.read("count", described.count, 1, kMostCount);
  if (kind == "gpu") {
    described.device = read_gpu(unit);
  } else if (kind == "ndp-dimm") {
    described.device = NdpDimmDescription{read_dram(unit.table("dram")), read_core(unit.table("core"))};
    unit.end();
  } else {
    unit.fail("kind", fmt::format("is '{}'; gpu or ndp-dimm is expected", kind));
  }
  return described;
}

}  // namespace

double rate(TomlFields& table, std::string_view key) {
  return table.number(key, kLeastRate, kMostDescribed);
}

std::map<std::string, UnitDescription> read_units(TomlFields units) {
  std::map<std::string, UnitDescription> all;
  for (const std::string& name : units.keys()) all[name] = read_unit(units.table(name));
  return all;
}

}  // namespace tierd
