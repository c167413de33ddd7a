#include "core/kernel/supply/supply.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/kernel/set_view.h"
#include "core/kernel/supply/stretches.h"

namespace tierd {
namespace {

Transfers::Options transfers_of(const Supply::Options& options) {
  const Topology& topology = *options.topology;
  Transfers::Options transfers;
  transfers.id = options.memory;
  transfers.memory = topology.memory(options.memory);
  for (const Link& link : topology.links) {
    if (link.to == options.memory) transfers.from.push_back({link.from, link.agent, link.lane});
  }
  transfers.describe_extent = options.describe_extent;
  return transfers;
}

}  // namespace

Supply::Supply(Dispatcher& dispatcher, const SiteTable& sites, Strategies& strategies, Residency& residency,
               Options options, Notice& changed)
    : dispatcher_(dispatcher),
      sites_(sites),
      strategies_(strategies),
      residency_(residency),
      options_(std::move(options)),
      is_computed_from_(options_.topology->unit_of(options_.memory) != Topology::kNoUnit),
      changed_(changed),
      admission_(sites.editions, strategies, options_.memory, residency, counters_, dispatcher),
      sources_(*options_.topology, options_.memory, options_.memories, residency),
      transfers_(dispatcher, sites, residency, transfers_of(options_), *this),
      spare_time_({options_.memory, dispatcher, sites, residency, admission_, sources_, transfers_}),
      scratch_(sites) {
  links_.resize(transfers_.sources().size());
  links_busy_until_.resize(links_.size());
}

Supply::~Supply() = default;

// A step passes through its sites in their order: what was fetched ahead for one that it has passed by now is
// for nobody.
void Supply::begin_pass(SiteId site, uint32_t step) {
  over_before_ = position(site, step);
  transfers_.begin_pass(step);
  wishes_.drop_passed(site, step, [this](FetchList& list) { drop(list); });
  const auto passed = [&](const Transfer* transfer) {
    return transfer->purpose.step == step && is_over(transfer->purpose) && !transfer->into_arena() &&
           !transfer->unwanted;
  };
  if (std::ranges::none_of(transfers_.all(), passed)) return;
  for (Transfer* transfer : std::vector(transfers_.all())) {
    if (passed(transfer)) give_up(*transfer);
  }
}

void Supply::end_pass() {
  transfers_.end_pass();
  spare_time_.end();
}

template <class Begin>
Result<Gathering*> Supply::open(Begin begin) {
  if (unused_.empty()) {
    unused_.push_back(&gatherings_.emplace_back(
        Gathering::Context{options_.memory, dispatcher_, sites_, residency_, transfers_, admission_, wishes_,
                           sources_, counters_, scratch_, !is_computed_from_}));
  }
  Gathering* const gathering = open_.emplace_back(unused_.back());
  unused_.pop_back();
  std::vector<Transfer*> surplus;
  Status begun = begin(*gathering, surplus);
  give_up(surplus);
  if (begun.ok()) return gathering;
  close(*gathering);
  return begun.error();
}

Result<Gathering*> Supply::gather(const Demand& demand) {
  return open([&](Gathering& gathering, auto& surplus) { return gathering.begin(demand, surplus); });
}

Result<Gathering*> Supply::gather(const Demand& demand, ActiveSet wanted) {
  return open([&](Gathering& gathering, auto& surplus) {
    return gathering.begin(demand, std::move(wanted), surplus);
  });
}

Result<Offer*> Supply::offer(Demand demand, ActiveSet wanted) {
  demand.edition = held_as(demand.edition);
  TIERD_ASSIGN(Gathering* const gathering, gather(demand, std::move(wanted)));
  return gathering;
}

void Supply::close(Gathering& gathering, bool gives_up) {
  std::vector<Transfer*> surplus;
  gathering.end(surplus);
  if (gathering.passes_on() && gathering.took_some()) tell_passed_on(gathering);
  std::erase(open_, &gathering);
  unused_.push_back(&gathering);
  if (gives_up) give_up(surplus);
}

// A cache hears of what another memory got from here as it hears of what a pass computed. Nobody waits for
// its answer.
void Supply::tell_passed_on(const Gathering& gathering) {
  const Demand& demand = gathering.demand();
  if (demand.bypass) return;
  Strategy<tierd_cache_1>& cache = strategies_.caches[options_.memory - 1u];
  if (cache.quarantined()) return;  // its fault was told
  const tierd_set_view set =
      edition_set(demand.edition, sites_.editions[demand.edition], *demand.wanted, 1, TIERD_SET_TRUE);
  admission_.keep_fault(cache.call_if(&tierd_cache_1::touch, "touch", &set));
  if (!cache.quarantined()) admission_.keep_fault(admission_.expire(demand.edition));
}

// One that must wait for room keeps those behind it waiting: see RunOrder.
void Supply::fetch() {
  try_again();
  for (Gathering* const gathering : open_) {
    if (gathering->demand().priority == Priority::prefetch) continue;
    if (!gathering->fetch()) return;
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
    FetchList part{.purpose = {site, step, options_.memory},
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
  over_before_ = position(0, step + 1);
  wishes_.drop_until(step, [this](FetchList& list) { drop(list); });
  for (Transfer* transfer : std::vector(transfers_.all())) {
    if (transfer->purpose.step <= step && !transfer->into_arena()) give_up(*transfer);
  }
}

void Supply::pump() {
  // The room that a demand waits for is not given to the look-ahead.
  const auto waits = [](const Gathering* gathering) {
    return gathering->demand().priority != Priority::prefetch && gathering->waits_for_room();
  };
  if (std::ranges::any_of(open_, waits)) return;
  for (Gathering* const gathering : open_) {
    if (gathering->demand().priority == Priority::prefetch && !gathering->fetch()) break;
  }
  std::deque<Wish>& wishes = wishes_.all();
  while (!wishes.empty()) {
    drop_what_cannot_be_had(wishes.front());
    while (!wishes.front().done()) {
      const Transfers::Started started = transfers_.start(wishes.front());
      if (started.empty()) return;
      for (Transfer* transfer : started) transfer->shared = !is_computed_from_ && !transfer->into_arena();
    }
    for (FetchList& part : wishes.front().parts) sources_.leave(part);
    wishes.pop_front();
  }
  admission_.keep_fault(spare_time_.start());
}

// Its pass will ask again, and hear why.
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

// Nobody wants this transfer any more. Bytes in flight must land before their memory can be used again.
void Supply::give_up(Transfer& transfer) {
  if (transfer.waiting != 0 || (transfer.shared && !is_over(transfer.purpose))) return;
  if (transfer.state == Transfer::State::moving) {
    // What goes into the arena is kept when it lands: the bytes are paid for.
    if (!transfer.into_arena()) transfers_.abandon(transfer);
    return;
  }
  if (transfer.state == Transfer::State::failed && transfer.into_arena())
    admission_.failed(transfer.edition, transfer.neurons);
  waste(transfer);
}

void Supply::give_up(std::span<Transfer* const> transfers) {
  for (Transfer* transfer : transfers) give_up(*transfer);
}

// Closes a transfer that nobody computes from.
void Supply::waste(Transfer& transfer) {
  if (!transfer.into_arena())
    counters_.wasted += transfer.neurons.size() - std::min<uint64_t>(transfer.neurons.size(), transfer.taken);
  sources_.leave(transfer);
  transfers_.close(transfer);
}

bool Supply::transferring(SiteId site, uint32_t step) const {
  return std::ranges::any_of(transfers_.all(), [&](const Transfer* transfer) {
    return transfer->purpose.site == site && transfer->purpose.step == step &&
           transfer->state == Transfer::State::moving;
  });
}

void Supply::count(const Message& message, const Done& done, std::span<Transfer* const> transfers) {
  const MemoryId from = message.op == Op::read ? kStore : message.from;
  const std::vector<Transfers::From>& sources = transfers_.sources();
  const auto source = std::ranges::find(sources, from, &Transfers::From::memory);
  const auto index = static_cast<size_t>(source - sources.begin());
  LinkCounters& link = links_[index];
  ++link.messages;
  link.neurons += done.n_done;
  link.bytes += done.bytes;
  link.payload_bytes += std::min(done.bytes, transfers_.payload_bytes(transfers, done.n_done));
  // Messages end in the order of their ends.
  uint64_t& until = links_busy_until_[index];
  link.busy_ns += done.done_ns - std::min(done.done_ns, std::max(until, done.start_ns));
  until = std::max(until, done.done_ns);
  if (!transfers.empty() && transfers.front()->meanwhile) spare_time_.moved(done);
}

void Supply::on_done(const Message& message, const Done& done) {
  std::vector<Transfer*> transfers;
  transfers_.ended(message.id, transfers);
  count(message, done, transfers);
  const bool alone = transfers.size() == 1;
  for (Transfer* transfer : transfers) {
    if (done.status == DoneStatus::ok) {
      landed(*transfer, done.bytes);
    } else {
      failed(*transfer, done, alone);
    }
  }
  dispatcher_.wake(changed_);
}

// Transfers that shared a message and failed are tried again one by one; for the second there may be no
// message yet.
void Supply::try_again() {
  for (Transfer* transfer : transfers_.all()) {
    if (transfer->state != Transfer::State::failed) continue;
    if (!dispatcher_.can_post()) return;
    transfers_.post_again(*transfer);
  }
}

void Supply::landed(Transfer& transfer, uint64_t bytes) {
  transfer.state = Transfer::State::landed;
  sources_.leave(transfer);
  if (!transfer.into_arena()) {
    if (transfer.unwanted) return waste(transfer);
    if (!transfer.shared) {
      if (transfer.gathering != nullptr) transfer.gathering->landed(transfer);
      return;
    }
    for (Gathering* const gathering : open_) {
      if (gathering->waits_for(transfer)) gathering->landed(transfer);
    }
    return;
  }
  admission_.landed(transfer.edition, transfer.neurons);
  if (transfer.moves_home) move_home(transfer);
  if (fill_progress_) fill_progress_(bytes);
  for (Gathering* const gathering : open_) {
    if (gathering->waits_for(transfer)) gathering->landed(transfer);
  }
  transfers_.close(transfer);
}

// What is made of these is at home where they are.
void Supply::move_home(const Transfer& transfer) {
  const uint16_t unit = options_.topology->unit_of(options_.memory);
  for (EditionId e = 0; e < sites_.editions.size(); ++e) {
    if (e != transfer.edition && sites_.editions[e].made_of != transfer.edition) continue;
    for (const uint32_t neuron : transfer.neurons)
      options_.placement->move(e, neuron, static_cast<uint8_t>(unit));
  }
}

// It failed, or was cancelled before somebody came to want it after all. `alone`: the message fetched nothing
// else, so what went wrong is its own.
void Supply::failed(Transfer& transfer, const Done& done, bool alone) {
  const bool demanded = std::ranges::any_of(open_, [&](const Gathering* gathering) {
    return gathering->demand().priority != Priority::prefetch && gathering->waits_for(transfer);
  });
  const bool wanted = demanded || (fill_progress_ && fill_status_.ok());
  // The run that was to compute from it is not done: its agent has cancelled it.
  const bool followed = std::ranges::any_of(
      open_, [&](const Gathering* gathering) { return gathering->is_followed(transfer); });
  if (done.status != DoneStatus::cancelled && !wanted) ++counters_.prefetch_failed;
  if (!alone && wanted) --transfer.attempts;  // by itself it has not been tried yet
  const bool again = done.status != DoneStatus::lost && transfer.attempts < options_.read_attempts;
  if (wanted && again && !followed) {
    if (done.status != DoneStatus::cancelled) ++counters_.retries;
    if (demanded) transfer.priority = Priority::demand;
    transfer.state = Transfer::State::failed;
    return try_again();
  }
  const Error error = transfers_.error(transfer, done);
  if (transfer.into_arena()) admission_.failed(transfer.edition, transfer.neurons);
  if (transfer.waiting == 0 && fill_progress_ && fill_status_.ok()) fill_status_ = error;
  for (Gathering* const gathering : open_) {
    if (gathering->waits_for(transfer)) gathering->failed(transfer, error);
  }
  sources_.leave(transfer);
  transfers_.close(transfer);
}

Task<Status> Supply::fill(std::vector<WantedNeurons> wanted, std::function<void(uint64_t)> progress,
                          std::function<bool()> stopping) {
  std::vector<FetchList> lists;
  Status status;
  for (WantedNeurons& from : wanted) {
    FetchList& list = lists.emplace_back();
    list.purpose = {sites_.editions[from.edition].owner, 0, options_.memory};
    list.edition = from.edition;
    list.priority = Priority::migration;
    list.any_order = true;
    status = admission_.admit_wanted(std::move(from), list);
    if (!status.ok()) break;
  }

  // g++ 12 with UBSan believes `this` to be null where a member that is a reference is awaited.
  Notice& changed = changed_;
  fill_progress_ = progress ? std::move(progress) : [](uint64_t) {};
  fill_status_ = status;
  for (FetchList& list : lists) {
    if (fill_status_.ok()) fill_status_ = sources_.find(list);
    while (!list.done() && fill_status_.ok()) {
      sources_.fetch();
      if (transfers_.start(list).empty()) co_await changed;
      if (fill_status_.ok()) fill_status_ = Sources::status(list);
      if (fill_status_.ok() && stopping()) fill_status_ = Error{Code::cancelled, "load", "interrupted"};
    }
    drop(list);
  }
  while (!transfers_.all().empty()) {
    co_await changed;
    try_again();
  }
  fill_progress_ = nullptr;
  if (!fill_status_.ok()) co_return fill_status_;
  co_return take_fault();
}

void Supply::give_up_all() {
  over_before_ = UINT64_MAX;
  spare_time_.end();
  wishes_.drop_until(UINT32_MAX, [this](FetchList& list) { drop(list); });
  for (Transfer* transfer : std::vector(transfers_.all())) give_up(*transfer);
}

}  // namespace tierd
