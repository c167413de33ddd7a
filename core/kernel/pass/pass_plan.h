// Which unit computes each neuron of a pass, and in which edition: asked of the balancer and of the
// quantizer, where there is a choice.
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
  // Plans a pass that computes `active`, which lives until the next call. Error: plugin_fault.
  // `prompt`: its rows are of prompts.
  Status make(SiteId site, const ActiveSet& active, uint32_t rows, bool prompt = false);
  // One for each edition of the site, the best first, which is the order in which they are fetched and
  // summed; some may have no neurons.
  std::span<const Share> shares(uint32_t unit) const {
    return std::span(shares_).subspan(unit * levels_, levels_);
  }
  uint32_t size(uint32_t unit) const { return sizes_[unit]; }  // neurons of all its shares
  // What was answered for each neuron of the pass, until `foreseen_levels` is called; NULL where there was no
  // choice.
  const uint8_t* level_of() const { return levels_ > 1 ? level_of_.data() : nullptr; }
  const uint8_t* unit_of() const { return units_ > 1 ? unit_of_.data() : nullptr; }

  // Returns the bytes that the planned pass uses, summed over its rows: of those that it computes (what
  // `make` was given) some may be measured alone.
  uint64_t used_bytes(SiteId site, const ActiveSet& computed, const ActiveSet& used, uint32_t rows) const;

  // In which of the site's editions each of these neurons would be computed, that a later pass is expected to
  // use: an index for each, until the next call; empty where there is one edition. Error: plugin_fault.
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
  std::vector<ActiveSet> lists_;  // [units x levels], where the active set is divided
  // The plugins' answers, by neuron.
  std::vector<uint8_t> unit_of_;
  std::vector<uint8_t> level_of_;
};

}  // namespace tierd
