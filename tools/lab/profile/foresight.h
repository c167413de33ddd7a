// How much the inputs of an operator tell of those of the same operator in later layers, and how much of its
// result is lost with its smaller inputs: over a text, of operators that are cut into channels.
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

  // Compares layers that are up to `distances` apart. `sites` outlives this.
  Foresight(const SiteTable& sites, uint32_t distances);

  uint32_t distances() const { return distances_; }
  // Takes the passes of a step in their order. Where there are many rows, some of them are looked at, evenly
  // chosen.
  void measured(SiteId site, const MeasuredPass& pass);

  // At sparsity (level + 1) / 10, returns which share of the channels that a site uses is used by the same
  // operator `distance` layers later as well; 0 where nothing was seen.
  float precision(SiteId site, uint32_t distance, uint32_t level) const;
  // Cosine between the inputs of the two, its mean over the tokens.
  float similarity(SiteId site, uint32_t distance) const;
  // Without the smallest `percent` of its inputs: what they would have given, as a share of the sum of
  // squares of what all give.
  float lost(SiteId site, uint32_t percent) const;

 private:
  static constexpr uint32_t kRowsAtOnce = 32;

  // Inputs of some rows of one site.
  struct Seen {
    SiteId site;
    std::vector<float> x;  // [rows x n]
    std::vector<uint32_t>
        order;  // [rows x n] of each input among those of its row: 0 is the smallest magnitude
  };
  // Pair compares two sites that are a given number of layers apart.
  struct Pair {
    std::vector<uint64_t> used;   // [kLevels] channels that the first one uses
    std::vector<uint64_t> found;  // [kLevels] and the second one as well
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
  std::map<uint16_t, std::vector<Seen>> earlier_;  // by operator: of the layers before in this step
};

}  // namespace tierd
