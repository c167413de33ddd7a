#include "core/time/unit_description.h"

#include <fmt/format.h>

namespace tierd {
namespace {

using View = DescribedNumbers::View;

constexpr uint32_t kMostCount = 1024;
constexpr uint32_t kMostParts = 64;  // ranks, bank groups, banks
constexpr uint32_t kMostRowBytes = 1u << 20;
constexpr uint32_t kMostCycles = 65536;
constexpr uint32_t kMostOfCore = 1u << 20;  // multipliers, lanes, operations of a cycle
constexpr uint32_t kMostBufferBytes = 1u << 30;

GpuDescription read_gpu(DescribedTable& unit) {
  unit.refuse_others({"kind", "count", "bytes_per_second", "flops", "launch_ns", "expand_bytes_per_second"});
  GpuDescription gpu{.memory_rate = unit.rate("bytes_per_second"),
                     .flops = unit.rate("flops"),
                     .launch_ns = static_cast<uint64_t>(unit.time("launch_ns"))};
  if (unit.has("expand_bytes_per_second")) gpu.expand_rate = unit.rate("expand_bytes_per_second");
  return gpu;
}

Ddr4Description read_dram(DescribedTable dram) {
  dram.refuse_others({"ranks", "bank_groups", "banks_per_group", "row_bytes", "clock_hz", "t_rc", "t_rcd",
                      "t_cl", "t_rp", "t_bl", "t_ccd_s", "t_ccd_l", "t_rrd_s", "t_rrd_l", "t_faw"});
  const Ddr4Description described{.ranks = dram.whole("ranks", kMostParts),
                                  .bank_groups = dram.whole("bank_groups", kMostParts),
                                  .banks_per_group = dram.whole("banks_per_group", kMostParts),
                                  .row_bytes = dram.whole("row_bytes", kMostRowBytes, kDdr4BurstBytes),
                                  .clock_hz = dram.rate("clock_hz"),
                                  .rc = dram.whole("t_rc", kMostCycles),
                                  .rcd = dram.whole("t_rcd", kMostCycles),
                                  .cl = dram.whole("t_cl", kMostCycles),
                                  .rp = dram.whole("t_rp", kMostCycles),
                                  .bl = dram.whole("t_bl", kMostCycles),
                                  .ccd_s = dram.whole("t_ccd_s", kMostCycles),
                                  .ccd_l = dram.whole("t_ccd_l", kMostCycles),
                                  .rrd_s = dram.whole("t_rrd_s", kMostCycles),
                                  .rrd_l = dram.whole("t_rrd_l", kMostCycles),
                                  .faw = dram.whole("t_faw", kMostCycles)};
  if (described.row_bytes % kDdr4BurstBytes != 0)
    dram.fail("row_bytes",
              fmt::format(" is {}; whole bursts of {} are expected", described.row_bytes, kDdr4BurstBytes));
  return described;
}

NdpCoreDescription read_core(DescribedTable core) {
  core.refuse_others({"clock_hz", "multipliers", "lanes", "cycles_per_product", "buffer_bytes",
                      "exponentials", "additions", "multiplications"});
  return {.clock_hz = core.rate("clock_hz"),
          .multipliers = core.whole("multipliers", kMostOfCore),
          .lanes = core.whole("lanes", kMostOfCore),
          .cycles_per_product = core.whole("cycles_per_product", kMostCycles),
          .buffer_bytes = core.whole("buffer_bytes", kMostBufferBytes),
          .exponentials = core.whole("exponentials", kMostOfCore),
          .additions = core.whole("additions", kMostOfCore),
          .multiplications = core.whole("multiplications", kMostOfCore)};
}

UnitDescription read_unit(DescribedTable unit) {
  UnitDescription described;
  if (unit.has("count")) described.count = unit.whole("count", kMostCount);
  const std::string kind = unit.text("kind");
  if (kind == "gpu") {
    described.device = read_gpu(unit);
  } else if (kind == "ndp-dimm") {
    unit.refuse_others({"kind", "count", "dram", "core"});
    described.device = NdpDimmDescription{read_dram(unit.inner("dram")), read_core(unit.inner("core"))};
  } else {
    unit.fail("kind", fmt::format(" is '{}'; gpu or ndp-dimm is expected", kind));
  }
  return described;
}

}  // namespace

std::map<std::string, UnitDescription> read_units(DescribedNumbers& numbers, const View& units) {
  std::map<std::string, UnitDescription> all;
  for (const auto& [name, node] : numbers.table(units, "units")) {
    const std::string key = fmt::format("units.{}", name.str());
    all[std::string(name.str())] = read_unit({numbers, View(numbers.table(View(node), key)), key});
  }
  return all;
}

}  // namespace tierd
