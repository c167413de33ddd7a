#include "core/kernel/gathering.h"

#include <algorithm>

#include "core/base/check.h"

namespace tierd {

Gathering::Gathering(const Memory& memory) : memory_(memory) {
  uint32_t most = 0;
  for (const Site& site : memory_.sites) most = std::max(most, site.n);
  source_.assign(most, nullptr);
  coming_.assign(most, nullptr);
  planned_.assign(most, 0);
  places_.assign(most, kNowhere);
}

Status Gathering::begin(SiteId site, EditionId edition, uint32_t step, const Demand& demand,
                        std::vector<Fetch*>& surplus) {
  site_ = site;
  edition_ = edition;
  step_ = step;
  status_ = {};
  wanted_ = &demand.wanted;
  next_ = 0;
  for (const uint32_t neuron : sourced_) source_[neuron] = nullptr;
  sourced_.clear();
  ours_.clear();
  for (Fetch* fetch : memory_.reads.all()) {
    if (fetch->unwanted || fetch->edition != edition) continue;
    if (!fetch->into_arena() && !fetch->is_for(site, step)) continue;
    for (const uint32_t neuron : fetch->neurons) coming_[neuron] = fetch;
    ours_.push_back(fetch);
  }
  take_over_wish();
  sort_missing(demand);
  for (const Planned& planned : plan_.neurons) planned_[planned.neuron] = 0;
  for (const Fetch* fetch : ours_) {
    for (const uint32_t neuron : fetch->neurons) coming_[neuron] = nullptr;
  }
  for (Fetch* fetch : ours_) {
    if (fetch->gathering == this) {
      memory_.reads.demand(*fetch);
    } else if (fetch->is_for(site, step) && !fetch->into_arena()) {
      surplus.push_back(fetch);
    }
  }
  if (memory_.sites[site].added) {
    const std::span<const Residency::Neuron> here = memory_.residency.neurons(edition);
    for (const uint32_t neuron : resident_)
      places_[neuron] = memory_.reads.arena_place(edition, here[neuron].slot);
    for (const Fetch* fetch : awaited_) {
      if (fetch->state == Fetch::State::landed) note_places(*fetch);
    }
  }
  TIERD_TRY(memory_.admission.admit(edition, missing_, Priority::demand, demand.bypass, plan_));
  if (memory_.sites[site].added) sort_by_runs(memory_.sites[site], plan_);
  return {};
}

// A wish that was not worked off in time becomes part of the demand, as far as it was right.
void Gathering::take_over_wish() {
  for (Plan wish = memory_.wishes.take(site_, edition_, step_); !wish.done(); ++wish.next) {
    const auto [neuron, keep] = wish.neurons[wish.next];
    // A site that shares the edition may have fetched it since.
    const bool needed =
        keep || (coming_[neuron] == nullptr && memory_.residency.slot(edition_, neuron) == kNoSlot);
    if (needed && wanted_->contains(neuron)) {
      planned_[neuron] = 1;
      plan_.neurons.push_back({neuron, keep});
    } else if (keep) {
      memory_.residency.abandon(edition_, neuron);
    }
  }
}

// Pins what is valid, and leaves in `missing_` those that nobody fetches yet.
void Gathering::sort_missing(const Demand& demand) {
  const auto used = [&](uint32_t neuron) { return demand.used == nullptr || demand.used->contains(neuron); };
  SchedulerCounters& counters = memory_.counters;
  const std::vector<uint32_t>& bytes = memory_.sites.editions[edition_].bytes;
  missing_.clear();
  memory_.residency.pin_valid(edition_, demand.wanted, resident_, missing_);
  pinned_.assign(resident_.begin(), resident_.end());
  for (const uint32_t neuron : missing_) places_[neuron] = kNowhere;
  const auto count = [&](const std::vector<uint32_t>& neurons, uint64_t& counted) {
    for (const uint32_t neuron : neurons) (used(neuron) ? counted : counters.measured_bytes) += bytes[neuron];
  };
  count(resident_, counters.resident_bytes);
  count(missing_, counters.streamed_bytes);
  counters.hits += static_cast<uint64_t>(std::count_if(resident_.begin(), resident_.end(), used));
  size_t to_ask = 0;
  for (const uint32_t neuron : missing_) {
    if (Fetch* fetch = coming_[neuron]; fetch != nullptr) {
      if (fetch->gathering == nullptr) wait_for(*fetch);
      set_source(neuron, fetch);
      ++fetch->left;
      ++counters.staged;
      continue;
    }
    if (!used(neuron)) {
      if (planned_[neuron] == 0) plan_.neurons.push_back({neuron, false});
      continue;
    }
    ++counters.misses;
    if (planned_[neuron] != 0) continue;
    if (memory_.residency.leased(edition_, neuron)) {
      // Admitted for a later site that shares the edition (a tied head), and not asked for yet.
      memory_.wishes.claim(edition_, neuron);
      plan_.neurons.push_back({neuron, true});
      continue;
    }
    missing_[to_ask++] = neuron;
  }
  missing_.resize(to_ask);
}

bool Gathering::fetch() {
  while (!plan_.done()) {
    const std::span<Fetch* const> started = memory_.reads.start_demanded(site_, edition_, step_, plan_);
    if (started.empty()) return false;
    for (Fetch* fetch : started) {
      wait_for(*fetch);
      fetch->left = static_cast<uint32_t>(fetch->neurons.size());
      for (const uint32_t neuron : fetch->neurons) set_source(neuron, fetch);
    }
  }
  return true;
}

void Gathering::wait_for(Fetch& fetch) {
  fetch.gathering = this;
  fetch.left = 0;  // of a pass that failed, some may be counted still
  awaited_.push_back(&fetch);
}

void Gathering::hand_out(std::vector<Unit>& units) {
  if (memory_.sites[site_].added) return hand_out_runs(units);
  const std::span<const Residency::Neuron> here = memory_.residency.neurons(edition_);
  const size_t before = units.size();
  units.resize(before + resident_.size());
  std::ranges::transform(resident_, units.begin() + static_cast<std::ptrdiff_t>(before),
                         [&](uint32_t neuron) {
                           return Unit{neuron, memory_.reads.arena_place(edition_, here[neuron].slot)};
                         });
  resident_.clear();
  for (Fetch* fetch : awaited_) {
    if (fetch->state != Fetch::State::landed) continue;
    if (!units.empty() && units.size() + fetch->neurons.size() > memory_.dispatcher.max_units()) break;
    fetch->state = Fetch::State::computing;
    fetch->computed_by = {};
    memory_.reads.each_place(*fetch, [&](uint32_t neuron, uint32_t place) {
      // Not those that nobody wants, nor those that a site which shares the edition has fetched meanwhile.
      if (source_[neuron] == fetch) units.push_back({neuron, place});
    });
  }
}

void Gathering::hand_out_runs(std::vector<Unit>& units) {
  const ActiveSet& wanted = *wanted_;
  const uint32_t of_run = memory_.sites[site_].run;
  while (next_ != wanted.size()) {
    const uint32_t run = wanted[next_] / of_run;
    uint32_t end = next_;
    for (; end != wanted.size() && wanted[end] / of_run == run; ++end) {
      if (places_[wanted[end]] == kNowhere) return;
    }
    if (!units.empty() && units.size() + (end - next_) > memory_.dispatcher.max_units()) return;
    for (; next_ != end; ++next_) {
      const uint32_t neuron = wanted[next_];
      units.push_back({neuron, places_[neuron]});
      Fetch* const fetch = source_[neuron];
      if (fetch == nullptr || --fetch->left != 0) continue;
      fetch->state = Fetch::State::computing;
      fetch->computed_by = {};
    }
  }
  resident_.clear();
}

bool Gathering::handed_out() const {
  return resident_.empty() && plan_.done() &&
         std::all_of(awaited_.begin(), awaited_.end(),
                     [](const Fetch* f) { return f->state == Fetch::State::computing; });
}

void Gathering::computed_by(MessageId message) {
  for (Fetch* fetch : awaited_) {
    if (fetch->state == Fetch::State::computing && fetch->computed_by == MessageId{})
      fetch->computed_by = message;
  }
}

void Gathering::computed(MessageId message) {
  std::erase_if(awaited_, [&](Fetch* fetch) {
    const bool over = fetch->state == Fetch::State::computing && fetch->computed_by == message;
    if (over) memory_.reads.close(*fetch);
    return over;
  });
}

void Gathering::end(std::vector<Fetch*>& surplus) {
  memory_.residency.unpin(edition_, pinned_);
  pinned_.clear();
  resident_.clear();
  memory_.admission.drop(edition_, plan_);
  plan_.neurons.clear();
  plan_.next = 0;
  for (Fetch* fetch : awaited_) {
    fetch->gathering = nullptr;
    surplus.push_back(fetch);
  }
  awaited_.clear();
}

void Gathering::landed(const Fetch& fetch) {
  if (fetch.into_arena()) {
    // In use until the pass ends: it must not be evicted before it is computed.
    memory_.residency.pin(edition_, fetch.neurons);
    pinned_.insert(pinned_.end(), fetch.neurons.begin(), fetch.neurons.end());
  }
  note_places(fetch);
}

void Gathering::failed(Fetch& fetch, const Error& error) {
  std::erase(awaited_, &fetch);
  if (status_.ok()) status_ = error;
}

void Gathering::note_places(const Fetch& fetch) {
  if (!memory_.sites[site_].added) return;
  memory_.reads.each_place(fetch, [&](uint32_t neuron, uint32_t place) {
    if (source_[neuron] == &fetch) places_[neuron] = place;
  });
}

}  // namespace tierd
