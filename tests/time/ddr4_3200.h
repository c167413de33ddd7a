// The DIMM of Hermes (Liu, Zhao et al., Table II): DDR4-3200, four ranks of two bank groups of four banks.
#pragma once

#include "core/time/ddr4_timing.h"

namespace tierd {

inline Ddr4Description ddr4_3200() {
  return {.ranks = 4,
          .bank_groups = 2,
          .banks_per_group = 4,
          .row_bytes = 8192,
          .clock_hz = 1.6e9,
          .rc = 76,
          .rcd = 24,
          .cl = 24,
          .rp = 24,
          .bl = 4,
          .ccd_s = 4,
          .ccd_l = 8,
          .rrd_s = 4,
          .rrd_l = 6,
          .faw = 26};
}

// Returns a DIMM with a single rank and this many bank groups and banks.
inline Ddr4Description one_rank(uint32_t bank_groups, uint32_t banks_per_group) {
  Ddr4Description dimm = ddr4_3200();
  dimm.ranks = 1;
  dimm.bank_groups = bank_groups;
  dimm.banks_per_group = banks_per_group;
  return dimm;
}

}  // namespace tierd
