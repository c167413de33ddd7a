#include "core/kernel/supply/supply.h"

#include <algorithm>
#include <utility>

#include "core/kernel/supply/stretches.h"

namespace tierd {

Supply::Supply(Dispatcher& dispatcher, const SiteTable& sites, Strategies& strategies, Residency& residency,
               const Options& options, Notice& changed)
    : dispatcher_(dispatcher),
      sites_(sites),
      residency_(residency),
      memory_(options.memory),
      topology_(*options.topology),
      is_computed_from_(topology_.unit_of(memory_) != Topology::kNoUnit),
      admission_(sites.editions, strategies, memory_, residency, counters_, dispatcher),
      sources_(topology_, memory_, options.memories, residency),
      transfers_(dispatcher, sites, residency, admission_, sources_, counters_,
                 {memory_, &topology_, options.describe_extent, options.read_attempts}, changed),
      spare_time_({memory_, topology_.unit_of(memory_), sites, residency, *options.placement, admission_,
                   sources_, transfers_}),
      fill_(memory_, sites, admission_, sources_, transfers_, changed),
      scratch_(sites) {}

void Supply::begin_pass(SiteId site, uint32_t step) {
  wishes_.drop_passed(site, step, [this](FetchList& list) { drop(list); });
  transfers_.begin_pass(site, step);
}

void Supply::end_pass() {
  transfers_.end_pass();
  spare_time_.end();
}

Gathering& Supply::open() {
  if (unused_.empty()) {
    unused_.push_back(&gatherings_.emplace_back(Gathering::Context{memory_, dispatcher_, sites_, residency_,
                                                                   transfers_, admission_, wishes_, sources_,
                                                                   counters_, scratch_, is_computed_from_}));
  }
  Gathering& gathering = *open_.emplace_back(unused_.back());
  unused_.pop_back();
  return gathering;
}

Result<Gathering*> Supply::begun(Gathering& gathering, const Status& status) {
  if (status.ok()) return &gathering;
  close(gathering);
  return status.error();
}

Result<Gathering*> Supply::gather(const Demand& demand) {
  Gathering& gathering = open();
  return begun(gathering, gathering.begin(demand));
}

Result<Gathering*> Supply::gather(const Demand& demand, ActiveSet wanted) {
  Gathering& gathering = open();
  return begun(gathering, gathering.begin(demand, std::move(wanted)));
}

Result<Offer*> Supply::offer(Demand demand, ActiveSet wanted) {
  demand.edition = held_as(demand.edition);
  TIERD_ASSIGN(Gathering* const gathering, gather(demand, std::move(wanted)));
  return gathering;
}

void Supply::close(Gathering& gathering, bool gives_up) {
  gathering.end(gives_up);
  std::erase(open_, &gathering);
  unused_.push_back(&gathering);
}

// One that must wait for room keeps those behind it waiting: see sort_by_stretches.
void Supply::fetch() {
  transfers_.try_again();
  for (Gathering* const gathering : open_) {
    if (gathering->demand().priority == Priority::prefetch) continue;
    if (!transfers_.start_all(gathering->list())) return;
  }
}

Status Supply::wish(std::span<const Wished> wanted, uint32_t step, bool bypass) {
  Wish wish;
  wish.step = step;
  for (const auto& [site, edition, neurons] : wanted) {
    const std::span<const Residency::Neuron> here = residency_.neurons(edition);
    missing_.clear();
    present_.clear();
    // What the memories above have asked for comes for their sake.
    const auto is_gathered = [&](uint32_t neuron) {
      return !is_computed_from_ && std::ranges::any_of(open_, [&](const Gathering* of) {
        return of->is_for(site, step, edition, neuron);
      });
    };
    for (const uint32_t neuron : neurons) {
      if (here[neuron].slot == kNoSlot && !is_gathered(neuron)) missing_.push_back(neuron);
      if (here[neuron].state == Residency::State::valid) present_.push_back(neuron);
    }
    if (missing_.empty()) continue;
    FetchList part{.purpose = {site, step, memory_},
                   .edition = edition,
                   .priority = Priority::prefetch,
                   .bypass = bypass,
                   .any_order = !sites_[site].added};
    // Nobody makes room for a neuron that is used at the same time: it would only be fetched again.
    residency_.pin(edition, present_);
    Status admitted = admission_.admit(missing_, part);
    residency_.unpin(edition, present_);
    if (admitted.ok() && sites_[site].added) sort_by_stretches(sites_[site].run, part);
    if (admitted.ok()) {
      admitted = sources_.find(part);
      if (!admitted.ok()) drop(part);
    }
    if (!admitted.ok()) {
      for (FetchList& other : wish.parts) drop(other);
      return admitted;
    }
    if (part.done()) {
      sources_.leave(part);
    } else {
      wish.parts.push_back(std::move(part));
    }
  }
  if (!wish.parts.empty()) wishes_.all().push_back(std::move(wish));
  return {};
}

void Supply::end_step(uint32_t step) {
  wishes_.drop_until(step, [this](FetchList& list) { drop(list); });
  transfers_.end_step(step);
}

void Supply::pump() {
  // The room that a demand waits for is not given to the look-ahead.
  const auto waits_for_room = [&](Gathering* gathering) {
    const FetchList& list = gathering->list();
    return list.priority != Priority::prefetch && !list.done() &&
           next_is_ready(sites_[list.purpose.site].run, list);
  };
  if (std::ranges::any_of(open_, waits_for_room)) return;
  for (Gathering* const gathering : open_) {
    FetchList& list = gathering->list();
    if (list.priority == Priority::prefetch && !transfers_.start_all(list)) break;
  }
  std::deque<Wish>& wishes = wishes_.all();
  while (!wishes.empty()) {
    drop_what_cannot_be_had(wishes.front());
    while (!wishes.front().done()) {
      if (!transfers_.start(wishes.front())) return;
    }
    for (FetchList& part : wishes.front().parts) sources_.leave(part);
    wishes.pop_front();
  }
  admission_.keep_fault(spare_time_.start());
}

// The pass of the wish will ask again, and receive the error.
void Supply::drop_what_cannot_be_had(Wish& wish) {
  for (FetchList& part : wish.parts) {
    if (Sources::status(part).ok()) continue;
    ++counters_.prefetch_failed;
    drop(part);
  }
}

// The neurons that no transfer has taken from the list are not wanted any more.
void Supply::drop(FetchList& list) {
  admission_.drop(list);
  sources_.leave(list);
}

bool Supply::transferring(SiteId site, uint32_t step) const {
  return std::ranges::any_of(transfers_.all(), [&](const Transfer* transfer) {
    return transfer->purpose.site == site && transfer->purpose.step == step && transfer->under_way();
  });
}

void Supply::give_up_all() {
  spare_time_.end();
  wishes_.drop_until(UINT32_MAX, [this](FetchList& list) { drop(list); });
  transfers_.give_up_all();
}

}  // namespace tierd
