#include "core/kernel/look_ahead.h"

#include <algorithm>

#include "core/kernel/plugin_answer.h"
#include "core/message/message.h"

namespace tierd {
namespace {

// Whether neurons of one number follow each other in the file.
bool side_by_side(const Edition& edition, const Edition& next) {
  return next.first_extent == edition.first_extent + 1 && edition.stride > 1 && next.stride == edition.stride;
}

}  // namespace

LookAhead::LookAhead(const SiteTable& sites, PassPlan& plan, const Placement& placement,
                     const Topology& topology, std::deque<Supply>& supplies)
    : sites_(sites),
      plan_(plan),
      placement_(placement),
      topology_(topology),
      supplies_(supplies),
      wished_(sites.size(), 0),
      foreseen_(sites.size(), Foreseen{kNoStep, {}}) {}

Status LookAhead::wish(SiteId site, uint32_t step, std::span<const tierd_ahead> wishes, bool bypass) {
  later_.clear();
  for (const tierd_ahead& wish : wishes) {
    const uint64_t when = step + (uint64_t{site} + wish.distance) / sites_.size();
    if (sites_[wish.site].given() || wished_[wish.site] > when || when >= kNoStep) continue;
    wished_[wish.site] = when + 1;
    neurons_of(wish, sites_[wish.site].n, neurons_);
    if (wish.idx != nullptr) foreseen_[wish.site] = {static_cast<uint32_t>(when), neurons_};
    TIERD_TRY(add(wish.site, static_cast<uint32_t>(when), bypass));
  }
  return pass_on(bypass);
}

// `neurons_` of a later site, each in the edition in which it would be computed, and at its home.
Status LookAhead::add(SiteId site, uint32_t step, bool bypass) {
  const std::vector<EditionId>& editions = sites_[site].editions;
  std::span<const uint8_t> level_of;
  if (editions.size() > 1) {
    TIERD_ASSIGN(level_of, plan_.levels(site, ActiveSet::of(neurons_), 1));
  }
  for (size_t level = 0; level < editions.size(); ++level) {
    const EditionId edition = editions[level];
    const bool beside = !later_.empty() && step_ == step &&
                        side_by_side(sites_.editions[later_.back().edition], sites_.editions[edition]);
    if (!beside) TIERD_TRY(pass_on(bypass));
    step_ = step;
    Later& later = later_.emplace_back(Later{site, edition, {}});
    later.neurons.resize(topology_.units.size());
    if (topology_.units.size() == 1 && editions.size() == 1) {
      later.neurons[0] = neurons_;
      continue;
    }
    for (size_t i = 0; i < neurons_.size(); ++i) {
      if (editions.size() == 1 || level_of[i] == level)
        later.neurons[placement_.home(edition, neurons_[i])].push_back(neurons_[i]);
    }
  }
  return {};
}

// What was collected, to each unit its own.
Status LookAhead::pass_on(bool bypass) {
  if (later_.empty()) return {};
  std::vector<Supply::Wished> wanted;
  for (uint32_t u = 0; u < topology_.units.size(); ++u) {
    wanted.clear();
    for (const Later& later : later_) wanted.push_back({later.site, later.edition, later.neurons[u]});
    TIERD_TRY(supplies_[topology_.units[u].memory - 1u].wish(wanted, step_, bypass));
  }
  later_.clear();
  return {};
}

void LookAhead::count(SiteId site, uint32_t step, const ActiveSet& active, SiteUse& use) {
  Foreseen& foreseen = foreseen_[site];
  if (foreseen.step != step) return;
  foreseen.step = kNoStep;
  use.foreseen += foreseen.neurons.size();
  use.wanted += active.size();
  use.right += active.count_common(foreseen.neurons);
}

void LookAhead::forget() {
  std::fill(wished_.begin(), wished_.end(), 0);
}

}  // namespace tierd
