#include "core/kernel/pass/look_ahead.h"

#include <algorithm>

#include "core/agent/message.h"
#include "core/kernel/plugin_answer.h"

namespace tierd {
namespace {

// Returns whether neurons of one number are contiguous in the file.
bool side_by_side(const Edition& edition, const Edition& next) {
  return next.first_extent == edition.first_extent + 1 && edition.stride > 1 && next.stride == edition.stride;
}

// Merges two ascending lists that have no neuron in common.
void merge_into(std::vector<uint32_t>& neurons, const std::vector<uint32_t>& others) {
  const auto middle = static_cast<std::ptrdiff_t>(neurons.size());
  neurons.insert(neurons.end(), others.begin(), others.end());
  std::inplace_merge(neurons.begin(), neurons.begin() + middle, neurons.end());
}

}  // namespace

LookAhead::LookAhead(const SiteTable& sites, PassPlan& plan, const Placement& placement,
                     const Topology& topology, std::deque<Supply>& supplies)
    : sites_(sites),
      plan_(plan),
      placement_(placement),
      topology_(topology),
      supplies_(supplies),
      wished_(topology.memories.size(), std::vector<uint64_t>(sites.editions.size(), 0)),
      takes_(topology.memories.size(), 0),
      foreseen_(sites.size(), Foreseen{kNoStep, {}}) {}

Status LookAhead::wish(SiteId site, uint32_t step, const WishList& wishes, MemoryId own, bool bypass) {
  later_.clear();
  for (const WishList::Wish& wish : wishes.all()) {
    const MemoryId memory = wish.memory == TIERD_NO_MEMORY ? own : static_cast<MemoryId>(wish.memory);
    const uint64_t when = step + (uint64_t{site} + wish.distance) / sites_.size();
    if (sites_[wish.site].given() || when >= kNoStep) continue;
    const EditionId named = wish.edition == kNoEdition ? kNoEdition : sites_.wanted(wish.site, wish.edition);
    if (!take(wish.site, named, when, memory)) continue;
    neurons_of(wishes, wish, sites_[wish.site].n, neurons_);
    const std::span<const float> scores = wishes.scores(wish);
    scores_.assign(scores.begin(), scores.end());
    if (memory == kStore && !wish.all) foreseen_[wish.site] = {static_cast<uint32_t>(when), neurons_};
    TIERD_TRY(add(wish.site, named, memory, static_cast<uint32_t>(when), bypass));
  }
  return pass_on(bypass);
}

// Records the wish for every memory that it may be for. Returns false if all have one for that pass.
bool LookAhead::take(SiteId site, EditionId named, uint64_t when, MemoryId memory) {
  std::ranges::fill(takes_, 0);
  const std::vector<EditionId>& all = sites_[site].editions;
  const std::span<const EditionId> editions = named == kNoEdition ? std::span(all) : std::span(&named, 1);
  const auto ask = [&](MemoryId of) {
    std::vector<uint64_t>& wished = wished_[of - 1u];
    if (std::ranges::any_of(editions, [&](EditionId e) { return wished[e] > when; })) return;
    for (const EditionId e : editions) wished[e] = when + 1;
    takes_[of - 1u] = 1;
  };
  if (memory != kStore) ask(memory);
  for (size_t u = 0; u < topology_.units.size() && memory == kStore; ++u) ask(topology_.units[u].memory);
  return std::ranges::count(takes_, 1) != 0;
}

// Collects `neurons_` of a later site, each in the named edition or in the one in which it would be computed.
Status LookAhead::add(SiteId site, EditionId named, MemoryId memory, uint32_t step, bool bypass) {
  const std::vector<EditionId>& editions = sites_[site].editions;
  std::span<const uint8_t> level_of;
  if (editions.size() > 1 && named == kNoEdition) {
    TIERD_ASSIGN(level_of, plan_.foreseen_levels(site, ActiveSet::of(neurons_, {}, scores_)));
  }
  for (size_t level = 0; level < editions.size(); ++level) {
    const EditionId edition = editions[level];
    if (named != kNoEdition && named != edition) continue;
    const bool beside = !later_.empty() && step_ == step && memory_ == memory &&
                        (later_.back().site == site ||
                         side_by_side(sites_.editions[later_.back().edition], sites_.editions[edition]));
    if (!beside) TIERD_TRY(pass_on(bypass));
    step_ = step;
    memory_ = memory;
    add(site, edition, memory, level_of, level);
  }
  return {};
}

// Collects the neurons of one level for the memory that fetches them.
void LookAhead::add(SiteId site, EditionId edition, MemoryId memory, std::span<const uint8_t> level_of,
                    size_t level) {
  Later& later = later_.emplace_back(Later{site, edition, {}});
  later.neurons.resize(topology_.memories.size());
  if (topology_.units.size() == 1 && memory == kStore) memory = topology_.units.front().memory;
  if (memory != kStore && level_of.empty()) {
    later.neurons[memory - 1u] = neurons_;
    return;
  }
  for (size_t i = 0; i < neurons_.size(); ++i) {
    if (!level_of.empty() && level_of[i] != level) continue;
    const MemoryId to =
        memory != kStore ? memory : topology_.units[placement_.home(edition, neurons_[i])].memory;
    if (takes_[to - 1u] != 0) later.neurons[to - 1u].push_back(neurons_[i]);
  }
}

// Hands the collected neurons to each memory. Editions of a site are requested one by one; editions that the
// memory holds as one are merged.
Status LookAhead::pass_on(bool bypass) {
  for (size_t m = 0; m < topology_.memories.size(); ++m) {
    wanted_.clear();
    std::vector<uint32_t>* last = nullptr;  // neurons of the last of them
    for (Later& later : later_) {
      std::vector<uint32_t>& neurons = later.neurons[m];
      if (neurons.empty()) continue;
      const EditionId held = supplies_[m].held_as(later.edition);
      if (!wanted_.empty() && wanted_.back().site == later.site) {
        if (wanted_.back().edition == held) {
          merge_into(*last, neurons);
          wanted_.back().neurons = *last;
          continue;
        }
        TIERD_TRY(supplies_[m].wish(wanted_, step_, bypass));
        wanted_.clear();
      }
      wanted_.push_back({later.site, held, neurons});
      last = &neurons;
    }
    if (!wanted_.empty()) TIERD_TRY(supplies_[m].wish(wanted_, step_, bypass));
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
  for (std::vector<uint64_t>& of_memory : wished_) std::fill(of_memory.begin(), of_memory.end(), 0);
}

}  // namespace tierd
