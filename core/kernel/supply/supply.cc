#include "core/kernel/supply/supply.h"

#include <algorithm>
#include <utility>

#include "core/kernel/supply/stretches.h"

namespace tierd {

Supply::Supply(Dispatcher& dispatcher, const SiteTable& sites, Strategies& strategies, Residency& residency,
               const Options& options, Notice& changed)
    : context_{options.memory, dispatcher, sites, *options.topology, residency, counters_, changed},
      admission_(context_, strategies),
      sources_(context_, options.memories),
      transfers_(context_, admission_, sources_, {options.describe_extent, options.read_attempts}),
      spare_time_(context_, *options.placement, admission_, sources_, transfers_),
      fill_(context_, admission_, sources_, transfers_),
      scratch_(sites) {}

void Supply::begin_pass(SiteId site, uint32_t step) {
  wishes_.drop_passed(site, step, [this](FetchList& list) { drop(list); });
  transfers_.begin_pass(site, step);
}

void Supply::end_pass() {
  transfers_.end_pass();
  spare_time_.end();
}

Result<Gathering*> Supply::gather(GatherRequest&& request) {
  if (unused_.empty()) {
    const Gathering::Shared shared{transfers_, admission_, wishes_, sources_, scratch_};
    unused_.push_back(&gatherings_.emplace_back(context_, shared));
  }
  Gathering* const gathering = open_.emplace_back(unused_.back());
  unused_.pop_back();
  const Status begun = gathering->begin(std::move(request));
  if (begun.ok()) return gathering;
  close(*gathering);
  return begun.error();
}

Result<Offer*> Supply::offer(GatherRequest request) {
  request.edition = held_as(request.edition);
  TIERD_ASSIGN(Gathering* const gathering, gather(std::move(request)));
  return gathering;
}

void Supply::close(Gathering& gathering, bool gives_up) {
  gathering.end(gives_up);
  std::erase(open_, &gathering);
  unused_.push_back(&gathering);
}

// A gathering that must wait for room keeps those behind it waiting: see sort_by_stretches.
void Supply::fetch() {
  transfers_.try_again();
  for (Gathering* const gathering : open_) {
    if (gathering->request().priority == Priority::prefetch) continue;
    if (!transfers_.start_all(gathering->list())) return;
  }
}

Status Supply::wish(std::span<const Wished> wanted, uint32_t step, bool bypass) {
  Wish wish;
  wish.step = step;
  const bool shares_blocks = !context_.is_computed_from();
  for (const auto& [site, edition, neurons] : wanted) {
    const std::span<const Residency::Neuron> here = context_.residency.neurons(edition);
    missing_.clear();
    present_.clear();
    // Neurons that memories above have demanded are fetched for those.
    const auto is_gathered = [&, site = site, edition = edition](uint32_t neuron) {
      return shares_blocks && std::ranges::any_of(open_, [&](const Gathering* of) {
               return of->is_for(site, step, edition, neuron);
             });
    };
    for (const uint32_t neuron : neurons) {
      if (here[neuron].slot == kNoSlot && !is_gathered(neuron)) missing_.push_back(neuron);
      if (here[neuron].state == Residency::State::valid) present_.push_back(neuron);
    }
    if (missing_.empty()) continue;
    FetchList part{.purpose = {site, step, context_.id},
                   .edition = edition,
                   .priority = Priority::prefetch,
                   .bypass = bypass,
                   .any_order = !context_.sites[site].added};
    // A victim that the same pass uses would only be fetched again: pinned, it cannot be one.
    context_.residency.pin(edition, present_);
    Status admitted = admission_.admit(missing_, part);
    context_.residency.unpin(edition, present_);
    if (admitted.ok() && context_.sites[site].added) sort_by_stretches(context_.sites[site].stretch, part);
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
  // Look-ahead does not take the room that a demand waits for.
  const auto waits_for_room = [&](Gathering* gathering) {
    const FetchList& list = gathering->list();
    return list.priority != Priority::prefetch && !list.done() &&
           next_is_ready(context_.sites[list.purpose.site].stretch, list);
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
    ++context_.counters.prefetch_failed;
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
