#include "core/kernel/intake.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace tierd {
namespace {

// Blocks that look-ahead leaves free: one, so that a demand never waits for the compute of a later site, nor
// of a later run (see RunOrder); where there are many, some more, so that it reads one while it computes
// another.
uint32_t left_to_demand(uint32_t blocks) {
  return std::clamp(blocks / 8, 1u, 4u);
}

// What one message of a pass that waits asks for, where it can begin with the first runs: what a disk reads
// in some tenths of a millisecond, a few hand-overs long.
constexpr uint32_t kDemandedBytes = 512u << 10;

// What a block and a message must have room for at once.
uint32_t together(const Site& site) {
  return std::min(site.n, site.run);
}

}  // namespace

Intake::Intake(Dispatcher& dispatcher, const std::vector<Site>& sites, Strategies& strategies,
               Residency& residency, Options options, SchedulerCounters& counters, Notice& changed)
    : dispatcher_(dispatcher),
      sites_(sites),
      residency_(residency),
      options_(std::move(options)),
      counters_(counters),
      changed_(changed),
      admission_(sites, strategies, options_.unit, residency, counters, dispatcher),
      reads_(dispatcher, sites, residency, options_.reads, *this),
      demand_blocks_(left_to_demand(reads_.staging().blocks())),
      wishes_(sites) {
  uint32_t most = 0;
  for (SiteId site = 0; site < sites.size(); ++site) {
    TIERD_CHECK(together(sites[site]) <= std::min(reads_.most_in_block(site), reads_.most_units()));
    most = std::max(most, sites[site].n);
  }
  source_.assign(most, nullptr);
  coming_.assign(most, nullptr);
  planned_.assign(most, 0);
  places_.assign(most, kNowhere);
}

Intake::~Intake() = default;

// Tells apart what is here, what is coming, and what must be asked for.
Status Intake::begin(SiteId site, uint32_t step, const Demand& demand) {
  const ActiveSet& wanted = demand.wanted;
  const auto used = [&](uint32_t neuron) { return demand.used == nullptr || demand.used->contains(neuron); };
  give_up_passed(site, step);
  in_pass_ = true;
  site_ = site;
  step_ = step;
  status_ = {};
  const SiteId home = domain(site);
  const std::vector<uint32_t>& bytes = sites_[site].bytes;
  wanted_ = &wanted;
  next_ = 0;
  for (const uint32_t neuron : sourced_) source_[neuron] = nullptr;
  sourced_.clear();
  ours_.clear();
  for (Fetch* fetch : reads_.all()) {
    const bool for_this_pass = fetch->site == site && fetch->step == step;
    if (fetch->unwanted || domain(fetch->site) != home) continue;
    if (!fetch->into_arena() && !for_this_pass) continue;
    for (const uint32_t neuron : fetch->neurons) coming_[neuron] = fetch;
    ours_.push_back(fetch);
  }
  // A wish that was not worked off in time becomes part of the demand, as far as it was right.
  for (Plan wish = wishes_.take(site, step); !wish.done(); ++wish.next) {
    const auto [neuron, keep] = wish.neurons[wish.next];
    // What is to pass through staging may have come by way of an alias since.
    const bool needed = keep || (coming_[neuron] == nullptr && residency_.slot(home, neuron) == kNoSlot);
    if (needed && wanted.contains(neuron)) {
      planned_[neuron] = 1;
      plan_.neurons.push_back({neuron, keep});
    } else if (keep) {
      residency_.abandon(home, neuron);
    }
  }

  missing_.clear();
  residency_.pin_valid(home, wanted, resident_, missing_);
  pinned_.assign(resident_.begin(), resident_.end());
  for (const uint32_t neuron : missing_) places_[neuron] = kNowhere;
  const auto count = [&](const std::vector<uint32_t>& neurons, uint64_t& counted) {
    for (const uint32_t neuron : neurons)
      (used(neuron) ? counted : counters_.measured_bytes) += bytes[neuron];
  };
  count(resident_, counters_.resident_bytes);
  count(missing_, counters_.streamed_bytes);
  counters_.hits += static_cast<uint64_t>(std::count_if(resident_.begin(), resident_.end(), used));
  size_t to_ask = 0;
  for (const uint32_t neuron : missing_) {
    if (Fetch* fetch = coming_[neuron]; fetch != nullptr) {
      if (!fetch->awaited) await(*fetch);
      set_source(neuron, fetch);
      ++fetch->left;
      ++counters_.staged;
      continue;
    }
    if (!used(neuron)) {
      if (planned_[neuron] == 0) plan_.neurons.push_back({neuron, false});
      continue;
    }
    ++counters_.misses;
    if (planned_[neuron] != 0) continue;
    if (residency_.leased(home, neuron)) {
      // Admitted for a later site that shares these bytes (a tied head), and not asked for yet.
      wishes_.claim(home, neuron);
      plan_.neurons.push_back({neuron, true});
      continue;
    }
    missing_[to_ask++] = neuron;
  }
  missing_.resize(to_ask);
  for (const Planned& planned : plan_.neurons) planned_[planned.neuron] = 0;
  for (const Fetch* fetch : ours_) {
    for (const uint32_t neuron : fetch->neurons) coming_[neuron] = nullptr;
  }
  for (Fetch* fetch : ours_) {
    if (fetch->awaited) {
      fetch->priority = Priority::demand;
      if (fetch->state == Fetch::State::reading) dispatcher_.raise(fetch->message, Priority::demand);
    } else if (fetch->site == site && fetch->step == step && !fetch->into_arena()) {
      give_up(*fetch);  // the look-ahead was wrong about these
    }
  }
  if (sites_[site].added) {
    const std::span<const Residency::Neuron> here = residency_.neurons(site);
    for (const uint32_t neuron : resident_) places_[neuron] = reads_.arena_place(home, here[neuron].slot);
    for (const Fetch* fetch : awaited_) {
      if (fetch->state == Fetch::State::landed) note_places(*fetch);
    }
  }
  TIERD_TRY(admission_.admit(site, missing_, Priority::demand, demand.bypass, plan_));
  if (sites_[site].added) sort_by_runs(sites_[site], plan_);
  return {};
}

void Intake::fetch() {
  read_again();
  while (!plan_.done()) {
    if (!start_demanded()) return;
    for (Fetch* started : started_) {
      await(*started);
      started->left = static_cast<uint32_t>(started->neurons.size());
      for (const uint32_t neuron : started->neurons) set_source(neuron, started);
    }
  }
}

bool Intake::start_demanded() {
  if (!sites_[site_].added) return start_next(plan_, site_, step_, Priority::demand);
  asked_.clear();
  ask(site_, plan_);
  const Site& site = sites_[site_];
  asked_.front().most =
      std::min<size_t>(asked_.front().most, std::max(together(site), kDemandedBytes / site.slot_bytes));
  return start_runs(step_, Priority::demand, 0);
}

void Intake::await(Fetch& fetch) {
  fetch.awaited = true;
  fetch.left = 0;  // of a pass that failed, some may be counted still
  awaited_.push_back(&fetch);
}

void Intake::hand_out(std::vector<Unit>& units) {
  if (sites_[site_].added) return hand_out_runs(units);
  const std::span<const Residency::Neuron> here = residency_.neurons(site_);
  const SiteId home = domain(site_);
  const size_t before = units.size();
  units.resize(before + resident_.size());
  std::ranges::transform(resident_, units.begin() + static_cast<std::ptrdiff_t>(before),
                         [&](uint32_t neuron) {
                           return Unit{neuron, reads_.arena_place(home, here[neuron].slot)};
                         });
  resident_.clear();
  for (Fetch* fetch : awaited_) {
    if (fetch->state != Fetch::State::landed) continue;
    if (!units.empty() && units.size() + fetch->neurons.size() > dispatcher_.max_units()) break;
    fetch->state = Fetch::State::computing;
    fetch->computed_by = {};
    reads_.each_place(*fetch, [&](uint32_t neuron, uint32_t place) {
      // Not those that nobody wants, nor those that an alias has brought meanwhile.
      if (source_[neuron] == fetch) units.push_back({neuron, place});
    });
  }
}

void Intake::hand_out_runs(std::vector<Unit>& units) {
  const ActiveSet& wanted = *wanted_;
  const uint32_t of_run = sites_[site_].run;
  while (next_ != wanted.size()) {
    const uint32_t run = wanted[next_] / of_run;
    uint32_t end = next_;
    for (; end != wanted.size() && wanted[end] / of_run == run; ++end) {
      if (places_[wanted[end]] == kNowhere) return;
    }
    if (!units.empty() && units.size() + (end - next_) > dispatcher_.max_units()) return;
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

// Of a read that has landed, for the present pass.
void Intake::note_places(const Fetch& fetch) {
  if (!sites_[site_].added) return;
  reads_.each_place(fetch, [&](uint32_t neuron, uint32_t place) {
    if (source_[neuron] == &fetch) places_[neuron] = place;
  });
}

void Intake::computed_by(MessageId message) {
  for (Fetch* fetch : awaited_) {
    if (fetch->state == Fetch::State::computing && fetch->computed_by == MessageId{})
      fetch->computed_by = message;
  }
}

void Intake::computed(MessageId message) {
  std::erase_if(awaited_, [&](Fetch* fetch) {
    const bool over = fetch->state == Fetch::State::computing && fetch->computed_by == message;
    if (over) retire(*fetch, true);
    return over;
  });
}

bool Intake::handed_out() const {
  return resident_.empty() && plan_.done() &&
         std::all_of(awaited_.begin(), awaited_.end(),
                     [](const Fetch* f) { return f->state == Fetch::State::computing; });
}

void Intake::end() {
  if (!in_pass_) return;  // it did not come to `begin`
  in_pass_ = false;
  residency_.unpin(site_, pinned_);
  pinned_.clear();
  resident_.clear();
  admission_.drop(site_, plan_);
  plan_.neurons.clear();
  plan_.next = 0;
  for (Fetch* fetch : awaited_) {
    fetch->awaited = false;
    give_up(*fetch);
  }
  awaited_.clear();
}

Status Intake::wish(std::span<const Wished> wanted, uint32_t step, bool bypass) {
  Wish wish;
  wish.step = step;
  for (const auto& [site, neurons] : wanted) {
    const std::span<const Residency::Neuron> here = residency_.neurons(site);
    missing_.clear();
    present_.clear();
    for (const uint32_t neuron : neurons) {
      if (here[neuron].slot == kNoSlot) missing_.push_back(neuron);
      if (here[neuron].state == Residency::State::valid) present_.push_back(neuron);
    }
    if (missing_.empty()) continue;
    Wish::Part part{site, {}};
    // Nobody makes room for a neuron that is used at the same time: it would only come again.
    residency_.pin(site, present_);
    Status admitted = admission_.admit(site, missing_, Priority::prefetch, bypass, part.plan);
    residency_.unpin(site, present_);
    if (!admitted.ok()) {
      for (auto& [other, plan] : wish.parts) admission_.drop(other, plan);
      return admitted;
    }
    if (sites_[site].added) sort_by_runs(sites_[site], part.plan);
    if (!part.plan.done()) wish.parts.push_back(std::move(part));
  }
  if (!wish.parts.empty()) wishes_.all().push_back(std::move(wish));
  return {};
}

void Intake::end_step(uint32_t step) {
  for (Fetch* fetch : std::vector(reads_.all())) {
    if (fetch->step <= step && !fetch->into_arena()) give_up(*fetch);
  }
  wishes_.drop_until(step, [this](SiteId site, Plan& plan) { admission_.drop(site, plan); });
}

bool Intake::start_next(Plan& plan, SiteId site, uint32_t step, Priority priority) {
  started_.clear();
  if (!dispatcher_.can_post()) return false;
  const bool keep = plan.neurons[plan.next].keep;
  if (!keep) {
    const uint32_t needed = priority == Priority::demand ? 1 : 1 + demand_blocks_;
    if (reads_.staging().free_blocks() < needed) return false;
  }
  Fetch& fetch = reads_.open(site, step, priority);
  const size_t most = std::min(reads_.most_in_block(site), reads_.most_units());
  const auto from = plan.neurons.begin() + static_cast<std::ptrdiff_t>(plan.next);
  const auto limit = from + static_cast<std::ptrdiff_t>(std::min(most, plan.neurons.size() - plan.next));
  const auto to = std::find_if(from, limit, [keep](const Planned& planned) { return planned.keep != keep; });
  fetch.neurons.resize(static_cast<size_t>(to - from));
  std::transform(from, to, fetch.neurons.begin(), [](const Planned& planned) { return planned.neuron; });
  plan.next += fetch.neurons.size();
  if (!keep) fetch.block = reads_.staging().lease();
  started_.push_back(&fetch);
  post(fetch);
  return true;
}

// The next read of a wish, of as many of its sites as there can be blocks for.
bool Intake::start_next(Wish& wish) {
  asked_.clear();
  for (Wish::Part& part : wish.parts) {
    if (!part.plan.done()) ask(part.site, part.plan);
  }
  const size_t blocks = reads_.staging().blocks();
  const size_t most = std::min<size_t>(blocks > demand_blocks_ ? blocks - demand_blocks_ : 1,
                                       reads_.most_units() / together(sites_[asked_.front().site]));
  if (asked_.size() > most) asked_.resize(std::max<size_t>(1, most));
  if (asked_.size() == 1 && !sites_[asked_.front().site].added)
    return start_next(*asked_.front().plan, asked_.front().site, wish.step, Priority::prefetch);
  return start_runs(wish.step, Priority::prefetch, demand_blocks_);
}

void Intake::ask(SiteId site, Plan& plan) {
  asked_.push_back({.site = site, .plan = &plan, .most = reads_.most_in_block(site)});
}

// The next read of those in `asked_`. What streams by takes a block of each site, and leaves `spare` free;
// what is kept lies among it in the file, and comes with the same read.
bool Intake::start_runs(uint32_t step, Priority priority, uint32_t spare) {
  started_.clear();
  if (!dispatcher_.can_post()) return false;
  take_runs(asked_, sites_[asked_.front().site].run, reads_.most_units());
  const auto blocks = std::ranges::count_if(asked_, &NextRuns::takes_streams);
  if (blocks != 0 && reads_.staging().free_blocks() < static_cast<uint32_t>(blocks) + spare) return false;
  for (const NextRuns& asked : asked_) {
    Fetch* kept = nullptr;
    Fetch* streamed = nullptr;
    for (const auto [neuron, keep] : asked.taken()) {
      Fetch*& fetch = keep ? kept : streamed;
      if (fetch == nullptr) {
        fetch = started_.emplace_back(&reads_.open(asked.site, step, priority));
        if (!keep) fetch->block = reads_.staging().lease();
      }
      fetch->neurons.push_back(neuron);
    }
    asked.plan->next = asked.end;
  }
  reads_.post(started_, in_pass_ ? step_ : 0);
  return true;
}

void Intake::post(Fetch& fetch) {
  Fetch* const alone = &fetch;
  reads_.post({&alone, 1}, in_pass_ ? step_ : 0);
}

void Intake::pump() {
  // What a demand waits for is not given to the look-ahead.
  if (in_pass_ && !plan_.done()) return;
  std::deque<Wish>& wishes = wishes_.all();
  while (!wishes.empty()) {
    while (!wishes.front().done()) {
      if (!start_next(wishes.front())) return;
    }
    wishes.pop_front();
  }
}

// Nobody wants this fetch any more. Bytes in flight must land before their memory can be used again.
void Intake::give_up(Fetch& fetch) {
  if (fetch.state == Fetch::State::computing) return;
  if (fetch.state == Fetch::State::reading) {
    // What goes into the arena is kept when it lands: the bytes are paid for.
    if (fetch.into_arena()) return;
    reads_.abandon(fetch);
    return;
  }
  if (fetch.state == Fetch::State::failed && fetch.into_arena())
    admission_.failed(domain(fetch.site), fetch.neurons);
  retire(fetch, false);
}

// A step comes to its sites in their order. What was read ahead for one that it did not come to, such as an
// expert's that was not chosen, is for nobody.
void Intake::give_up_passed(SiteId site, uint32_t step) {
  wishes_.drop_passed(site, step, [this](SiteId other, Plan& plan) { admission_.drop(other, plan); });
  const auto passed = [&](const Fetch* fetch) {
    return fetch->step == step && fetch->site < site && !fetch->into_arena() && !fetch->unwanted;
  };
  if (std::ranges::none_of(reads_.all(), passed)) return;
  for (Fetch* fetch : std::vector(reads_.all())) {
    if (passed(fetch)) give_up(*fetch);
  }
}

void Intake::retire(Fetch& fetch, bool used) {
  if (!used && !fetch.into_arena()) counters_.wasted += fetch.neurons.size();
  reads_.close(fetch);
}

// Whether memory of this site and step still belongs to a read.
bool Intake::reading(SiteId site, uint32_t step) const {
  return std::ranges::any_of(reads_.all(), [&](const Fetch* fetch) {
    return fetch->site == site && fetch->step == step && fetch->state == Fetch::State::reading;
  });
}

void Intake::on_done(const Message& message, const Done& done) {
  counters_.read_bytes += done.bytes;
  std::vector<Fetch*> fetches;
  reads_.ended(message.id, fetches);
  const bool alone = fetches.size() == 1;
  for (Fetch* fetch : fetches) take_read(*fetch, done, alone);
  dispatcher_.wake(changed_);
}

// What came together and failed, one by one: for the second there may be no message yet.
void Intake::read_again() {
  for (Fetch* fetch : reads_.all()) {
    if (fetch->state != Fetch::State::failed) continue;
    if (!dispatcher_.can_post()) return;
    post(*fetch);
  }
}

// `alone`: the message brought nothing else, so what went wrong is its own.
void Intake::take_read(Fetch& fetch, const Done& done, bool alone) {
  const bool awaited = fetch.awaited;
  const SiteId home = domain(fetch.site);

  if (done.status == DoneStatus::ok) {
    fetch.state = Fetch::State::landed;
    if (fetch.into_arena()) {
      admission_.landed(home, fetch.neurons);
      if (fill_progress_) fill_progress_(done.bytes);
      if (awaited) {
        // In use until the pass ends: not to be evicted before it is computed.
        residency_.pin(home, fetch.neurons);
        pinned_.insert(pinned_.end(), fetch.neurons.begin(), fetch.neurons.end());
      } else {
        retire(fetch, true);
        return;
      }
    } else if (fetch.unwanted) {
      retire(fetch, false);
      return;
    }
    if (awaited) note_places(fetch);
    return;
  }

  // It failed, or was cancelled before somebody came to want it after all.
  const bool wanted = awaited || (fill_progress_ && fill_status_.ok());
  if (done.status != DoneStatus::cancelled && !wanted) ++counters_.prefetch_failed;
  if (!alone && wanted) --fetch.attempts;  // by itself it has not been tried yet
  if (wanted && fetch.attempts < options_.read_attempts) {
    if (done.status != DoneStatus::cancelled) ++counters_.retries;
    if (awaited) fetch.priority = Priority::demand;
    fetch.state = Fetch::State::failed;
    read_again();
    return;
  }
  const Error error = reads_.error(fetch, done);
  if (fetch.into_arena()) admission_.failed(home, fetch.neurons);
  if (awaited) {
    std::erase(awaited_, &fetch);
    if (status_.ok()) status_ = error;
  } else if (fill_progress_ && fill_status_.ok()) {
    fill_status_ = error;
  }
  retire(fetch, true);
}

Task<Status> Intake::fill(std::vector<WantedAtStart> wanted, std::function<void(uint64_t)> progress,
                          std::function<bool()> stopping) {
  std::vector<Wish::Part> admitted;
  Status status;
  for (WantedAtStart& from : wanted) {
    Wish::Part& part = admitted.emplace_back();
    part.site = from.site;
    status = admission_.admit_wanted(std::move(from), part.plan);
    if (!status.ok()) break;
  }

  // g++ 12 with UBSan believes `this` to be null where a member that is a reference is awaited.
  Notice& changed = changed_;
  fill_progress_ = progress ? std::move(progress) : [](uint64_t) {};
  fill_status_ = status;
  for (auto& [site, plan] : admitted) {
    while (!plan.done() && fill_status_.ok()) {
      if (!start_next(plan, site, 0, Priority::migration)) co_await changed;
      if (fill_status_.ok() && stopping()) fill_status_ = Error{Code::cancelled, "load", "interrupted"};
    }
    admission_.drop(site, plan);
  }
  while (!reads_.all().empty()) {
    co_await changed;
    read_again();
  }
  fill_progress_ = nullptr;
  if (!fill_status_.ok()) co_return fill_status_;
  co_return take_fault();
}

void Intake::give_up_all() {
  wishes_.drop_until(UINT32_MAX, [this](SiteId site, Plan& plan) { admission_.drop(site, plan); });
  for (Fetch* fetch : std::vector(reads_.all())) give_up(*fetch);
}

}  // namespace tierd
