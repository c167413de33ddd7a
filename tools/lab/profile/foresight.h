// Measures over a text, for operators that are cut into channels, how well the inputs of an operator predict
// those of the same operator in later layers, and how much of its result is lost without its smaller inputs.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/kernel/observer.h"
#include "core/kernel/site.h"

namespace tierd {

class Foresight {
 public:
  static constexpr uint32_t kLevels = 9;    // sparsity 0.1, 0.2, ... 0.9
  static constexpr uint32_t kShares = 101;  // 0, 1, ... 100 %

  // Compares layers that are up to `distances` apart. `sites` must outlive this.
  Foresight(const SiteTable& sites, uint32_t distances);

  uint32_t distances() const { return distances_; }
  // Takes the passes of a step in their order. If there are many rows, only some are measured, evenly spaced.
  void measured(SiteId site, const MeasuredPass& pass);

  // Returns, at sparsity (level + 1) / 10, the share of the channels used by a site that the same operator
  // also uses `distance` layers later; 0 if nothing was measured.
  float precision(SiteId site, uint32_t distance, uint32_t level) const;
  // Returns the cosine between the inputs of the two, averaged over the tokens.
  float similarity(SiteId site, uint32_t distance) const;
  // Returns the loss without the smallest `percent` of the inputs: their contributions, as a share of the sum
  // of squares of all contributions.
  float lost(SiteId site, uint32_t percent) const;

 private:
  static constexpr uint32_t kRowsAtOnce = 32;

  // The inputs of some rows of one site.
  struct Seen {
    SiteId site;
    std::vector<float> x;  // [rows x n]
    std::vector<uint32_t>
        order;  // [rows x n] of each input among those of its row: 0 is the smallest magnitude
  };
  // The comparison of two sites that are a given number of layers apart.
  struct Pair {
    std::vector<uint64_t> used;   // [kLevels] channels that the first site uses
    std::vector<uint64_t> found;  // [kLevels] of those, channels that the second site uses too
    double cosine = 0;
    uint64_t rows = 0;
  };
  struct Loss {
    std::vector<double> shares;  // [kShares] summed over rows
    uint64_t rows = 0;
  };

  void compare(const Seen& before, const Seen& now, uint32_t distance);
  Pair& pair(SiteId site, uint32_t distance) { return pairs_[site * distances_ + distance - 1]; }
  const Pair& pair(SiteId site, uint32_t distance) const { return pairs_[site * distances_ + distance - 1]; }

  const SiteTable& sites_;
  uint32_t distances_;
  std::vector<Pair> pairs_;                        // [sites x distances]
  std::vector<Loss> losses_;                       // [sites]
  std::map<uint16_t, std::vector<Seen>> earlier_;  // by operator: the earlier layers of this step
};

}  // namespace tierd
