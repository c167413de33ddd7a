// What passes used of a site, and how well that was foreseen.
#pragma once

#include <cstdint>

namespace tierd {

// Over all rows of all passes.
struct SiteUse {
  uint64_t rows = 0;
  uint64_t used = 0;        // neurons, summed over the rows: what was predicted
  uint64_t used_bytes = 0;  // of their slots, each in the edition that it was used in

  // These count the neurons that were used, by where they were when their pass began. Passes that bypass the
  // caches do not count.
  uint64_t hits = 0;
  uint64_t staged = 0;  // read ahead, and there or under way
  uint64_t misses = 0;
  // These three cover those of these passes for which a list was made when looking ahead.
  uint64_t foreseen = 0;  // neurons on the list
  uint64_t wanted = 0;    // neurons that were used
  uint64_t right = 0;     // both

  // These cover the passes in which everything was computed and measured.
  uint64_t measured_rows = 0;
  uint64_t predicted = 0;  // neurons
  uint64_t active = 0;     // those that gave anything
  uint64_t missed = 0;     // active and not predicted
  double mass = 0;         // sum of what they gave (Site::contribution)
  double missed_mass = 0;

  // Shares; 1 (0 for the mass) where there is nothing to miss.
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
