#include "core/kernel/supply.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/kernel/run_order.h"

namespace tierd {
namespace {

Reads::Options reads_of(const Supply::Options& options) {
  Reads::Options reads;
  reads.memory = options.topology->memory(options.memory);
  for (const Link& link : options.topology->links) {
    if (link.from == kStore && link.to == options.memory) reads.flash_agent = link.agent;
  }
  reads.describe_extent = options.describe_extent;
  return reads;
}

}  // namespace

Supply::Supply(Dispatcher& dispatcher, const SiteTable& sites, Strategies& strategies, Residency& residency,
               Options options, SchedulerCounters& counters, Notice& changed)
    : dispatcher_(dispatcher),
      sites_(sites),
      residency_(residency),
      options_(std::move(options)),
      counters_(counters),
      changed_(changed),
      admission_(sites.editions, strategies, options_.memory, residency, counters, dispatcher),
      reads_(dispatcher, sites, residency, reads_of(options_), *this) {}

Supply::~Supply() = default;

void Supply::begin_pass(SiteId site, uint32_t step) {
  site_ = site;
  step_ = step;
  reads_.begin_pass(step);
  give_up_passed(site, step);
}

Status Supply::gather(EditionId edition, const Gathering::Demand& demand) {
  if (in_use_ == gatherings_.size()) {
    gatherings_.emplace_back(
        Gathering::Memory{dispatcher_, sites_, residency_, reads_, admission_, wishes_, counters_});
  }
  surplus_.clear();
  Status begun = gatherings_[in_use_++].begin(site_, edition, step_, demand, surplus_);
  give_up(surplus_);
  return begun;
}

// An edition that must wait for room keeps those behind it waiting: see RunOrder.
void Supply::fetch() {
  read_again();
  for (Gathering& gathering : gatherings()) {
    if (!gathering.fetch()) return;
  }
}

EditionId Supply::hand_out(std::vector<Unit>& units) {
  const size_t before = units.size();
  for (Gathering& gathering : gatherings()) {
    gathering.hand_out(units);
    if (units.size() != before) return gathering.edition();
    if (sites_[site_].added && !gathering.handed_out()) break;
  }
  return kNoEdition;
}

void Supply::computed_by(MessageId message) {
  for (Gathering& gathering : gatherings()) gathering.computed_by(message);
}

void Supply::computed(MessageId message) {
  for (Gathering& gathering : gatherings()) gathering.computed(message);
}

bool Supply::handed_out() const {
  return std::ranges::all_of(gatherings(), &Gathering::handed_out);
}

Status Supply::status() const {
  for (const Gathering& gathering : gatherings()) TIERD_TRY(gathering.status());
  return {};
}

void Supply::end_pass() {
  surplus_.clear();
  for (Gathering& gathering : gatherings()) gathering.end(surplus_);
  in_use_ = 0;
  reads_.end_pass();
  give_up(surplus_);
}

Status Supply::wish(std::span<const Wished> wanted, uint32_t step, bool bypass) {
  Wish wish;
  wish.step = step;
  for (const auto& [site, edition, neurons] : wanted) {
    const std::span<const Residency::Neuron> here = residency_.neurons(edition);
    missing_.clear();
    present_.clear();
    for (const uint32_t neuron : neurons) {
      if (here[neuron].slot == kNoSlot) missing_.push_back(neuron);
      if (here[neuron].state == Residency::State::valid) present_.push_back(neuron);
    }
    if (missing_.empty()) continue;
    Wish::Part part{site, edition, {}};
    // Nobody makes room for a neuron that is used at the same time: it would only be fetched again.
    residency_.pin(edition, present_);
    Status admitted = admission_.admit(edition, missing_, Priority::prefetch, bypass, part.plan);
    residency_.unpin(edition, present_);
    if (!admitted.ok()) {
      for (Wish::Part& other : wish.parts) admission_.drop(other.edition, other.plan);
      return admitted;
    }
    if (sites_[site].added) sort_by_runs(sites_[site], part.plan);
    if (!part.plan.done()) wish.parts.push_back(std::move(part));
  }
  if (!wish.parts.empty()) wishes_.all().push_back(std::move(wish));
  return {};
}

void Supply::end_step(uint32_t step) {
  for (Fetch* fetch : std::vector(reads_.all())) {
    if (fetch->step <= step && !fetch->into_arena()) give_up(*fetch);
  }
  wishes_.drop_until(step, [this](EditionId edition, Plan& plan) { admission_.drop(edition, plan); });
}

void Supply::pump() {
  // What a demand waits for is not given to the look-ahead.
  if (!std::ranges::all_of(gatherings(), &Gathering::asked_all)) return;
  std::deque<Wish>& wishes = wishes_.all();
  while (!wishes.empty()) {
    while (!wishes.front().done()) {
      if (reads_.start_next(wishes.front()).empty()) return;
    }
    wishes.pop_front();
  }
}

// Nobody wants this fetch any more. Bytes in flight must land before their memory can be used again.
void Supply::give_up(Fetch& fetch) {
  if (fetch.state == Fetch::State::computing) return;
  if (fetch.state == Fetch::State::reading) {
    // What goes into the arena is kept when it lands: the bytes are paid for.
    if (fetch.into_arena()) return;
    reads_.abandon(fetch);
    return;
  }
  if (fetch.state == Fetch::State::failed && fetch.into_arena())
    admission_.failed(fetch.edition, fetch.neurons);
  waste(fetch);
}

void Supply::give_up(std::span<Fetch* const> fetches) {
  for (Fetch* fetch : fetches) give_up(*fetch);
}

// A step passes through its sites in their order: what was read ahead for one that it has passed by now is
// for nobody.
void Supply::give_up_passed(SiteId site, uint32_t step) {
  wishes_.drop_passed(site, step, [this](EditionId edition, Plan& plan) { admission_.drop(edition, plan); });
  const auto passed = [&](const Fetch* fetch) {
    return fetch->step == step && fetch->site < site && !fetch->into_arena() && !fetch->unwanted;
  };
  if (std::ranges::none_of(reads_.all(), passed)) return;
  for (Fetch* fetch : std::vector(reads_.all())) {
    if (passed(fetch)) give_up(*fetch);
  }
}

// Closes a read that nobody computes from.
void Supply::waste(Fetch& fetch) {
  if (!fetch.into_arena()) counters_.wasted += fetch.neurons.size();
  reads_.close(fetch);
}

bool Supply::reading(SiteId site, uint32_t step) const {
  return std::ranges::any_of(reads_.all(), [&](const Fetch* fetch) {
    return fetch->is_for(site, step) && fetch->state == Fetch::State::reading;
  });
}

void Supply::on_done(const Message& message, const Done& done) {
  counters_.read_bytes += done.bytes;
  std::vector<Fetch*> fetches;
  reads_.ended(message.id, fetches);
  const bool alone = fetches.size() == 1;
  for (Fetch* fetch : fetches) take_read(*fetch, done, alone);
  dispatcher_.wake(changed_);
}

// Fetches that shared a message and failed are read again one by one; for the second there may be no message
// yet.
void Supply::read_again() {
  for (Fetch* fetch : reads_.all()) {
    if (fetch->state != Fetch::State::failed) continue;
    if (!dispatcher_.can_post()) return;
    reads_.post_again(*fetch);
  }
}

// `alone`: the message fetched nothing else, so what went wrong is its own.
void Supply::take_read(Fetch& fetch, const Done& done, bool alone) {
  Gathering* const gathering = fetch.gathering;
  if (done.status == DoneStatus::ok) {
    fetch.state = Fetch::State::landed;
    if (fetch.into_arena()) {
      admission_.landed(fetch.edition, fetch.neurons);
      if (fill_progress_) fill_progress_(done.bytes);
      if (gathering == nullptr) return reads_.close(fetch);
    } else if (fetch.unwanted) {
      return waste(fetch);
    }
    if (gathering != nullptr) gathering->landed(fetch);
    return;
  }

  // It failed, or was cancelled before somebody came to want it after all.
  const bool wanted = gathering != nullptr || (fill_progress_ && fill_status_.ok());
  if (done.status != DoneStatus::cancelled && !wanted) ++counters_.prefetch_failed;
  if (!alone && wanted) --fetch.attempts;  // by itself it has not been tried yet
  if (wanted && fetch.attempts < options_.read_attempts) {
    if (done.status != DoneStatus::cancelled) ++counters_.retries;
    if (gathering != nullptr) fetch.priority = Priority::demand;
    fetch.state = Fetch::State::failed;
    read_again();
    return;
  }
  const Error error = reads_.error(fetch, done);
  if (fetch.into_arena()) admission_.failed(fetch.edition, fetch.neurons);
  if (gathering != nullptr) {
    gathering->failed(fetch, error);
  } else if (fill_progress_ && fill_status_.ok()) {
    fill_status_ = error;
  }
  reads_.close(fetch);
}

Task<Status> Supply::fill(std::vector<WantedAtStart> wanted, std::function<void(uint64_t)> progress,
                          std::function<bool()> stopping) {
  std::vector<Wish::Part> admitted;
  Status status;
  for (WantedAtStart& from : wanted) {
    Wish::Part& part = admitted.emplace_back();
    part.edition = from.edition;
    part.site = sites_.editions[from.edition].owner;
    status = admission_.admit_wanted(std::move(from), part.plan);
    if (!status.ok()) break;
  }

  // g++ 12 with UBSan believes `this` to be null where a member that is a reference is awaited.
  Notice& changed = changed_;
  fill_progress_ = progress ? std::move(progress) : [](uint64_t) {};
  fill_status_ = status;
  for (auto& [site, edition, plan] : admitted) {
    while (!plan.done() && fill_status_.ok()) {
      if (reads_.start_next(plan, site, edition, 0, Priority::migration).empty()) co_await changed;
      if (fill_status_.ok() && stopping()) fill_status_ = Error{Code::cancelled, "load", "interrupted"};
    }
    admission_.drop(edition, plan);
  }
  while (!reads_.all().empty()) {
    co_await changed;
    read_again();
  }
  fill_progress_ = nullptr;
  if (!fill_status_.ok()) co_return fill_status_;
  co_return take_fault();
}

void Supply::give_up_all() {
  wishes_.drop_until(UINT32_MAX, [this](EditionId edition, Plan& plan) { admission_.drop(edition, plan); });
  for (Fetch* fetch : std::vector(reads_.all())) give_up(*fetch);
}

}  // namespace tierd
