// The record of a router's guesses, which decides whether to read ahead by them. A wrong guess costs the disk
// an expert, a right one hides some computing: if too few are right, reading nothing ahead is faster.
#ifndef TIERD_ROUTER_GUESS_RECORD_HPP
#define TIERD_ROUTER_GUESS_RECORD_HPP

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tierd/plugin.hpp"

namespace tierd {

class GuessRecord {
 public:
  // `least`: the share of a site's guesses that should be right.
  GuessRecord(uint32_t sites, double least) : least_(least), sites_(sites) {}

  // `experts`, ascending: those that the site's next pass is expected to use.
  void guess(uint32_t site, const std::vector<uint32_t>& experts) { sites_[site].guessed = experts; }

  // Returns whether to read ahead the guessed experts of a site, for a pass of `rows` rows. The first guesses
  // are assumed to be right; a site with few own guesses is judged by the others as well.
  bool pays(uint32_t site, uint32_t rows) const {
    const Tally& own = sites_[site].tally[kind_of(rows)];
    const double share = (own.right + kOthers * share_of(rows)) / (own.guesses + kOthers);
    return share >= least_;
  }

  // Compares the guess with the experts that the pass used.
  void judge(const tierd_set_view& truth) {
    Site& at = sites_[truth.site];
    if (at.guessed.empty()) return;
    const auto guesses = static_cast<double>(at.guessed.size());
    double right = truth.idx == nullptr ? guesses : 0;
    for (const uint32_t expert : at.guessed)
      right += truth.idx != nullptr && std::binary_search(truth.idx, truth.idx + truth.n, expert) ? 1 : 0;
    at.guessed.clear();
    at.tally[kind_of(truth.rows)].add(right, guesses, kFading);
    all_[kind_of(truth.rows)].add(right, guesses, 1 - (1 - kFading) / static_cast<double>(sites_.size()));
  }

  // Returns the share of all sites' guesses that were right, in passes of one row, or in those of several
  // rows, which use most experts together.
  double share_of(uint32_t rows) const {
    const Tally& all = all_[kind_of(rows)];
    return all.right / all.guesses;
  }

 private:
  static constexpr double kFading = 0.95;  // of a pass of a site
  static constexpr double kOthers = 8;     // guesses that the share of all sites is worth
  static constexpr double kFirst = 16;     // guesses that are assumed to be right at first
  struct Tally {
    double right = 0, guesses = 0;
    void add(double more_right, double more_guesses, double fading) {
      right = fading * right + more_right;
      guesses = fading * guesses + more_guesses;
    }
  };
  struct Site {
    std::vector<uint32_t> guessed = {};  // of the pass to come, ascending
    Tally tally[2];
  };
  static int kind_of(uint32_t rows) { return rows > 1 ? 1 : 0; }

  double least_;
  std::vector<Site> sites_;
  Tally all_[2] = {{kFirst, kFirst}, {kFirst, kFirst}};
};

}  // namespace tierd
#endif
