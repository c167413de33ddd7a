// The unit and the edition of each neuron of a pass, chosen by balancer and quantizer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/active_set.h"
#include "core/kernel/set_view.h"
#include "core/kernel/site.h"
#include "core/kernel/strategies.h"

namespace tierd {

class PassPlan {
 public:
  // Everything referred to outlives the plan.
  PassPlan(const SiteTable& sites, Strategies& strategies, uint32_t units)
      : sites_(sites), strategies_(strategies), units_(units), sizes_(units) {}

  // Neurons that a unit computes in one edition.
  struct Share {
    EditionId edition = kNoEdition;
    const ActiveSet* neurons = nullptr;
  };
  // Plans a pass that computes `active`, which lives until the next call. `prompt`: its rows are of prompts.
  // Error: plugin_fault.
  Status make(SiteId site, const ActiveSet& active, uint32_t rows, bool prompt = false);
  // Returns a share for each edition, in the order of fetching and summing: the best first; some are empty.
  std::span<const Share> shares(uint32_t unit) const {
    return std::span(shares_).subspan(unit * levels_, levels_);
  }
  uint32_t size(uint32_t unit) const { return sizes_[unit]; }  // neurons of all its shares
  // Return the answer of the quantizer and of the balancer for each neuron of the pass, until
  // `foreseen_levels` is called; NULL if there was no choice.
  const uint8_t* level_of() const { return levels_ > 1 ? level_of_.data() : nullptr; }
  const uint8_t* unit_of() const { return units_ > 1 ? unit_of_.data() : nullptr; }

  // Returns the bytes that the planned pass uses, summed over its rows. `computed` is the set given to
  // `make`; neurons of it that are not in `used` are only measured.
  uint64_t used_bytes(SiteId site, const ActiveSet& computed, const ActiveSet& used, uint32_t rows) const;

  // Returns the edition in which each of these neurons of an expected later pass would be computed, as an
  // index into the site's editions, until the next call; empty if there is one edition. Error: plugin_fault.
  Result<std::span<const uint8_t>> foreseen_levels(SiteId site, const ActiveSet& neurons) {
    return levels(set_view(site, neurons, 1, TIERD_SET_FORESEEN));
  }

 private:
  Result<std::span<const uint8_t>> levels(const tierd_set_view& set);
  Status ask_units(SiteId site, const ActiveSet& neurons, uint32_t rows, bool prompt);

  const SiteTable& sites_;
  Strategies& strategies_;
  const uint32_t units_;
  size_t levels_ = 0;             // editions of the site
  std::vector<Share> shares_;     // [units x levels]
  std::vector<uint32_t> sizes_;   // [units]
  std::vector<ActiveSet> lists_;  // [units x levels], if the active set is divided
  // The plugins' answers, by neuron.
  std::vector<uint8_t> unit_of_;
  std::vector<uint8_t> level_of_;
};

}  // namespace tierd
