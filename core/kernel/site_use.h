// The neurons that passes used of a site, and the quality of their prediction.
#pragma once

#include <cstdint>

#include "core/report/figure.h"

namespace tierd {

// Sums over all rows of all passes.
struct SiteUse {
  uint64_t rows = 0;
  uint64_t used = 0;        // neurons of the predicted sets, summed over the rows
  uint64_t used_bytes = 0;  // of their slots, in the edition used

  // Used neurons by their place when their pass began. Passes that bypass the caches do not count.
  uint64_t hits = 0;
  uint64_t staged = 0;  // read ahead: in staging or under way
  uint64_t misses = 0;
  // These passes, if look-ahead made a list for them.
  uint64_t foreseen = 0;  // neurons on the list
  uint64_t wanted = 0;    // neurons that were used
  uint64_t right = 0;     // both

  // Passes in which everything was computed and measured.
  uint64_t measured_rows = 0;
  uint64_t predicted = 0;  // neurons
  uint64_t active = 0;     // neurons that contributed
  uint64_t missed = 0;     // active and not predicted
  double mass = 0;         // sum of the contributions (Site::contribution)
  double missed_mass = 0;

  static constexpr auto figures() {
    using F = SiteUse;
    return std::tuple(Basis{&F::rows}, Basis{&F::used}, Basis{&F::used_bytes}, Basis{&F::hits},
                      Basis{&F::staged}, Basis{&F::misses}, Basis{&F::foreseen}, Basis{&F::wanted},
                      Basis{&F::right}, Basis{&F::measured_rows}, Basis{&F::predicted}, Basis{&F::active},
                      Basis{&F::missed}, Basis{&F::mass}, Basis{&F::missed_mass});
  }
  // Shares; 1 (0 for the mass) if there is nothing to miss.
  double recall() const { return ratio(active - missed, active); }
  double precision() const { return ratio(active - missed, predicted); }
  double ahead_precision() const { return ratio(right, foreseen); }
  double ahead_recall() const { return ratio(right, wanted); }
  double missed_share() const { return mass > 0 ? missed_mass / mass : 0; }

 private:
  static double ratio(uint64_t part, uint64_t whole) {
    return whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
  }
};

}  // namespace tierd
