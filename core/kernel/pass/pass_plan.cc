#include "core/kernel/pass/pass_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/row_mask.h"
#include "core/kernel/pass/row_masks.h"

namespace tierd {
namespace {

// Returns 0 for an empty list. A loop without an early exit, which compiles to a few vector instructions.
uint8_t greatest(const std::vector<uint8_t>& numbers) {
  uint8_t most = 0;
  for (const uint8_t number : numbers) most = std::max(most, number);
  return most;
}

}  // namespace

uint64_t PassPlan::used_bytes(SiteId s, const ActiveSet& computed, const ActiveSet& used,
                              uint32_t rows) const {
  const std::vector<EditionId>& editions = sites_[s].editions;
  const auto slot = [&](size_t level) { return uint64_t{sites_.editions[editions[level]].slot_bytes}; };
  if (levels_ == 1) return count_uses(used, rows) * slot(0);
  const uint32_t words = mask_words(rows);
  uint64_t bytes = 0;
  for (uint32_t i = 0, u = 0; i < computed.size() && u < used.size(); ++i) {
    if (computed[i] != used[u]) continue;
    const uint64_t* const masks = used.row_masks();
    const uint64_t of = masks == nullptr ? rows : count_bits({masks + uint64_t{u} * words, words});
    bytes += of * slot(level_of_[i]);
    ++u;
  }
  return bytes;
}

Status PassPlan::make(SiteId s, const ActiveSet& active, uint32_t rows, bool prompt) {
  const std::vector<EditionId>& editions = sites_[s].editions;
  levels_ = editions.size();
  TIERD_TRY(levels(set_view(s, active, rows, TIERD_SET_PREDICTED)));
  TIERD_TRY(ask_units(s, active, rows, prompt));
  shares_.clear();
  if (units_ == 1 && levels_ == 1) {
    shares_.push_back({editions.front(), &active});
    sizes_.front() = active.size();
    return {};
  }
  std::vector<std::vector<uint32_t>> neurons(units_ * levels_);
  for (uint32_t i = 0; i < active.size(); ++i) {
    const size_t unit = units_ == 1 ? 0 : unit_of_[i];
    const size_t level = levels_ == 1 ? 0 : level_of_[i];
    neurons[unit * levels_ + level].push_back(active[i]);
  }
  lists_.resize(std::max(lists_.size(), neurons.size()));
  std::fill(sizes_.begin(), sizes_.end(), 0u);
  for (size_t k = 0; k < neurons.size(); ++k) {
    lists_[k] = ActiveSet::of(std::move(neurons[k]));
    shares_.push_back({editions[k % levels_], &lists_[k]});
    sizes_[k / levels_] += lists_[k].size();
  }
  return {};
}

// The assignment to units may depend on the edition.
Status PassPlan::ask_units(SiteId site, const ActiveSet& neurons, uint32_t rows, bool prompt) {
  if (units_ == 1) return {};
  auto& balancer = strategies_.balancer;
  unit_of_.assign(neurons.size(), 0);
  tierd_set_view set = set_view(site, neurons, rows, TIERD_SET_PREDICTED);
  set.level = level_of();
  set.prompt = prompt ? 1 : 0;
  TIERD_TRY(balancer.call(&tierd_balancer_1::assign, "assign", &set, unit_of_.data()));
  if (const uint8_t most = greatest(unit_of_); most >= units_)
    return balancer.fault("assign", fmt::format("unit {} of {}", most, units_));
  return {};
}

Result<std::span<const uint8_t>> PassPlan::levels(const tierd_set_view& set) {
  const size_t editions = sites_[set.site].editions.size();
  if (editions == 1) return std::span<const uint8_t>();
  auto& quantizer = strategies_.quantizer;
  level_of_.assign(set.n, 0);
  TIERD_TRY(quantizer.call(&tierd_levels_1::choose, "choose", &set, level_of_.data()));
  if (const uint8_t most = greatest(level_of_); most >= editions)
    return quantizer.fault("choose", fmt::format("edition {} of {}", most, editions));
  return std::span<const uint8_t>(level_of_);
}

}  // namespace tierd
