// The part of a report on energy (joules) and carbon (grams of CO2).
#pragma once

#include <optional>
#include <string>

#include "core/watch/energy/energy_ledger.h"
#include "tools/tierd/report_lines.h"

namespace tierd {

// "energy" of a report.
struct EnergyFigures {
  std::optional<EnergyTotals> totals;  // empty: the machine's power is not known

  std::optional<std::string> unknown() const;
  static constexpr auto figures() {
    using F = EnergyFigures;
    return std::tuple(
        Figure{&F::totals, "", Quantity::parts, Adds::sum, ""},
        Figure{&F::unknown, "unknown", Quantity::text, Adds::derived, "the reason without totals"});
  }
};

// A token is a decoded one.
ReportLines energy_lines(const EnergyFigures& energy);

}  // namespace tierd
