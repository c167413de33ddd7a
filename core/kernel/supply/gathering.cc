#include "core/kernel/supply/gathering.h"

#include <algorithm>
#include <utility>

#include "core/kernel/supply/stretches.h"

namespace tierd {

Gathering::Gathering(const Context& context)
    : context_(context),
      source_(context.sites.most_neurons(), nullptr),
      places_(context.sites.most_neurons(), kNowhere) {}

Status Gathering::begin(Demand demand, ActiveSet wanted, std::vector<Transfer*>& surplus) {
  kept_ = std::move(wanted);
  demand.wanted = &kept_;
  return begin(demand, surplus);
}

Status Gathering::begin(const Demand& demand, std::vector<Transfer*>& surplus) {
  demand_ = demand;
  const Site& site = context_.sites[demand.purpose.site];
  list_.purpose = demand.purpose;
  list_.edition = demand.edition;
  list_.priority = demand.priority;
  list_.bypass = demand.bypass;
  list_.any_order = !site.added;
  status_ = {};
  next_ = 0;
  took_some_ = false;
  for (const uint32_t neuron : sourced_) source_[neuron] = nullptr;
  sourced_.clear();
  ours_.clear();
  Scratch& scratch = context_.scratch;
  for (Transfer* transfer : context_.transfers.all()) {
    if (!is_for_us(*transfer)) continue;
    for (const uint32_t neuron : transfer->neurons) scratch.coming[neuron] = transfer;
    ours_.push_back(transfer);
  }
  if (!passes_on()) take_over_wish();
  if (context_.shares_blocks) withdraw_from_wish();
  sort_missing();
  for (const ToFetch& of : list_.neurons) scratch.listed[of.neuron] = 0;
  for (const Transfer* transfer : ours_) {
    for (const uint32_t neuron : transfer->neurons) scratch.coming[neuron] = nullptr;
  }
  adopt_transfers(surplus);
  if (notes_places()) note_residents();
  const size_t asked_from = list_.neurons.size();
  TIERD_TRY(context_.admission.admit(missing_, list_));
  note_refused(asked_from);
  if (site.added) sort_by_stretches(site.run, list_);
  return context_.sources.find(list_);
}

// Whether it fetches something that may be of use. A block that is not shared belongs to the gathering that
// waits for it.
bool Gathering::is_for_us(const Transfer& transfer) const {
  if (transfer.unwanted || transfer.edition != demand_.edition) return false;
  const auto& [site, step, client] = transfer.purpose;
  if (transfer.shared) return site == demand_.purpose.site && step == demand_.purpose.step;
  return transfer.into_arena() || (transfer.purpose == demand_.purpose && transfer.waiting == 0);
}

// A wish that was not worked off in time becomes part of the demand, as far as it was right.
void Gathering::take_over_wish() {
  const auto [site, step, client] = demand_.purpose;
  const EditionId edition = demand_.edition;
  Scratch& scratch = context_.scratch;
  FetchList wish = context_.wishes.take(site, edition, step);
  context_.sources.hand_over(wish, context_.transfers.all());
  for (; !wish.done(); ++wish.next) {
    const auto [neuron, keep, source] = wish.neurons[wish.next];
    // A site that shares the edition may have fetched it since.
    const bool needed =
        keep || (scratch.coming[neuron] == nullptr && context_.residency.slot(edition, neuron) == kNoSlot);
    if (needed && wanted().contains(neuron)) {
      scratch.listed[neuron] = 1;
      list_.neurons.push_back({neuron, keep});
    } else if (keep) {
      context_.residency.abandon(edition, neuron);
    }
  }
}

// What is wanted now is not left to a wish of this memory's own, whose turn may come late.
void Gathering::withdraw_from_wish() {
  const auto [site, step, client] = demand_.purpose;
  withdrawn_.clear();
  context_.wishes.withdraw(site, demand_.edition, step, wanted(), withdrawn_);
  for (const auto& [neuron, keep, source] : withdrawn_) {
    if (!keep && context_.scratch.coming[neuron] != nullptr) continue;
    context_.scratch.listed[neuron] = 1;
    list_.neurons.push_back({neuron, keep});
  }
}

// Pins what is valid, and leaves in `missing_` those that nobody fetches yet.
void Gathering::sort_missing() {
  const EditionId edition = demand_.edition;
  const ActiveSet* const only = demand_.used;
  const auto used = [&](uint32_t neuron) { return only == nullptr || only->contains(neuron); };
  const std::vector<uint32_t>& bytes = context_.sites.editions[edition].bytes;
  const std::vector<Transfer*>& coming = context_.scratch.coming;
  const std::vector<uint8_t>& listed = context_.scratch.listed;
  missing_.clear();
  context_.residency.pin_valid(edition, wanted(), resident_, missing_);
  pinned_.assign(resident_.begin(), resident_.end());
  for (const uint32_t neuron : missing_) places_[neuron] = kNowhere;
  UseCounters& counters = passes_on() ? context_.counters.passed_on : context_.counters;
  const auto count = [&](const std::vector<uint32_t>& neurons, uint64_t& counted) {
    for (const uint32_t neuron : neurons) (used(neuron) ? counted : counters.measured_bytes) += bytes[neuron];
  };
  count(resident_, counters.resident_bytes);
  count(missing_, counters.streamed_bytes);
  counters.hits += static_cast<uint64_t>(std::count_if(resident_.begin(), resident_.end(), used));
  size_t to_ask = 0;
  const Transfer* last = nullptr;
  for (const uint32_t neuron : missing_) {
    if (Transfer* transfer = coming[neuron]; transfer != nullptr) {
      if (std::exchange(last, transfer) != transfer && !waits_for(*transfer)) wait_for(*transfer);
      set_source(neuron, transfer);
      ++transfer->left;
      ++counters.staged;
      continue;
    }
    if (!used(neuron)) {
      if (listed[neuron] == 0) list_.neurons.push_back({neuron, false});
      continue;
    }
    ++counters.misses;
    if (listed[neuron] != 0) continue;
    if (context_.residency.leased(edition, neuron)) {
      // Admitted for a later site that shares the edition (a tied head), and not asked for yet. What another
      // gathering has not asked for yet is fetched twice.
      list_.neurons.push_back({neuron, context_.wishes.claim(edition, neuron)});
      continue;
    }
    missing_[to_ask++] = neuron;
  }
  missing_.resize(to_ask);
}

void Gathering::adopt_transfers(std::vector<Transfer*>& surplus) {
  for (Transfer* transfer : ours_) {
    if (waits_for(*transfer)) {
      if (demand_.priority == Priority::demand) context_.transfers.demand(*transfer);
    } else if (!transfer->into_arena() && !transfer->shared) {
      surplus.push_back(transfer);
    }
  }
}

void Gathering::note_residents() {
  const std::span<const Residency::Neuron> here = context_.residency.neurons(demand_.edition);
  for (const uint32_t neuron : resident_)
    places_[neuron] = context_.transfers.arena_place(demand_.edition, here[neuron].slot);
  for (const Transfer* transfer : awaited_) {
    if (transfer->state == Transfer::State::landed || can_follow(*transfer)) note_places(*transfer);
  }
}

// The list has those that were admitted in the order in which they were asked about.
void Gathering::note_refused(size_t asked_from) {
  refused_.clear();
  if (list_.neurons.size() - asked_from == missing_.size()) return;
  size_t admitted = asked_from;
  for (const uint32_t neuron : missing_) {
    if (admitted != list_.neurons.size() && list_.neurons[admitted].neuron == neuron) {
      ++admitted;
    } else {
      refused_.push_back(neuron);
    }
  }
}

bool Gathering::fetch() {
  while (!list_.done()) {
    const std::span<Transfer* const> started = context_.transfers.start(list_);
    if (started.empty()) return false;
    for (Transfer* transfer : started) {
      wait_for(*transfer);
      transfer->left = static_cast<uint32_t>(transfer->neurons.size());
      for (const uint32_t neuron : transfer->neurons) set_source(neuron, transfer);
      if (notes_places() && can_follow(*transfer)) note_places(*transfer);
    }
  }
  return true;
}

bool Gathering::waits_for_room() const {
  if (list_.done()) return false;
  const uint32_t in_stretch = context_.sites[demand_.purpose.site].run;
  const std::vector<ToFetch>& all = list_.neurons;
  const uint32_t stretch = all[list_.next].neuron / in_stretch;
  for (size_t i = list_.next; i != all.size() && all[i].neuron / in_stretch == stretch; ++i) {
    if (!list_.ready(i)) return false;
  }
  return true;
}

bool Gathering::waits_for(const Transfer& transfer) const {
  if (!transfer.into_arena() && !transfer.shared) return transfer.gathering == this;
  return std::ranges::find(awaited_, &transfer) != awaited_.end();
}

void Gathering::wait_for(Transfer& transfer) {
  ++transfer.waiting;
  transfer.gathering = this;
  transfer.left = 0;  // of a pass that failed, some may be counted still
  awaited_.push_back(&transfer);
}

void Gathering::leave(Transfer& transfer) {
  --transfer.waiting;
  transfer.gathering = nullptr;
  std::erase(awaited_, &transfer);
}

// Whether it is moved here by whoever computes from here, who can be told to wait for it. What that agent
// reads is not followed: a read that fails is tried again, and what is followed cannot be (docs/messages.md).
bool Gathering::can_follow(const Transfer& transfer) const {
  return transfer.state == Transfer::State::moving && transfer.priority == Priority::demand &&
         context_.transfers.moves(transfer) && context_.transfers.carrier(transfer) == demand_.agent;
}

void Gathering::follow(Transfer& transfer) {
  const auto known = std::ranges::find(followers_, &transfer, &Follower::transfer);
  if (known == followers_.end()) {
    followers_.push_back({&transfer, {}});
  } else {
    known->message = {};
  }
}

MessageId Gathering::hand_out(std::vector<Unit>& units) {
  if (context_.sites[demand_.purpose.site].added) return hand_out_stretches(units);
  const std::span<const Residency::Neuron> here = context_.residency.neurons(demand_.edition);
  units.resize(resident_.size());
  std::ranges::transform(resident_, units.begin(), [&](uint32_t neuron) {
    return Unit{neuron, context_.transfers.arena_place(demand_.edition, here[neuron].slot)};
  });
  resident_.clear();
  for (Transfer* transfer : awaited_) {
    if (transfer->state != Transfer::State::landed) continue;
    if (!units.empty() && units.size() + transfer->neurons.size() > context_.dispatcher.max_units()) break;
    transfer->state = Transfer::State::computing;
    transfer->computed_by = {};
    context_.transfers.each_place(*transfer, [&](uint32_t neuron, uint32_t place) {
      // Not those that nobody wants, nor those that a site which shares the edition has fetched meanwhile.
      if (source_[neuron] == transfer) units.push_back({neuron, place});
    });
  }
  return {};
}

// Hands out all that one message moves here.
MessageId Gathering::hand_out_moving(std::vector<Unit>& units) {
  MessageId move;
  for (Transfer* transfer : awaited_) {
    if (!can_follow(*transfer) || is_followed(*transfer)) continue;
    if (move != MessageId{} && transfer->message != move) continue;
    move = transfer->message;
    follow(*transfer);
    transfer->left = 0;
    context_.transfers.each_place(*transfer, [&](uint32_t neuron, uint32_t place) {
      if (source_[neuron] == transfer) units.push_back({neuron, place});
    });
  }
  return move;
}

MessageId Gathering::hand_out_stretches(std::vector<Unit>& units) {
  const uint32_t in_stretch = context_.sites[demand_.purpose.site].run;
  MessageId move;
  while (next_ != wanted().size()) {
    const uint32_t stretch = wanted()[next_] / in_stretch;
    MessageId of_stretch;
    uint32_t end = next_;
    for (; end != wanted().size() && wanted()[end] / in_stretch == stretch; ++end) {
      const uint32_t neuron = wanted()[end];
      if (places_[neuron] == kNowhere) return move;
      const Transfer* const transfer = source_[neuron];
      if (transfer == nullptr || transfer->state == Transfer::State::landed) continue;
      const bool second = of_stretch != MessageId{} && of_stretch != transfer->message;
      if (!can_follow(*transfer) || second) return move;
      of_stretch = transfer->message;
    }
    if (!units.empty() && of_stretch != MessageId{} && of_stretch != move) return move;
    if (!units.empty() && units.size() + (end - next_) > context_.dispatcher.max_units()) return move;
    if (of_stretch != MessageId{}) move = of_stretch;
    for (; next_ != end; ++next_) {
      const uint32_t neuron = wanted()[next_];
      units.push_back({neuron, places_[neuron]});
      Transfer* const transfer = source_[neuron];
      if (transfer == nullptr) continue;
      --transfer->left;
      if (transfer->state == Transfer::State::moving) {
        follow(*transfer);
      } else if (transfer->left == 0) {
        transfer->state = Transfer::State::computing;
        transfer->computed_by = {};
      }
    }
  }
  resident_.clear();
  return move;
}

bool Gathering::handed_out() const {
  if (context_.sites[demand_.purpose.site].added) return next_ == wanted().size();
  return resident_.empty() && list_.done() &&
         std::all_of(awaited_.begin(), awaited_.end(), [this](const Transfer* transfer) {
           return transfer->state == Transfer::State::computing || is_followed(*transfer);
         });
}

void Gathering::computed_by(MessageId message) {
  for (Transfer* transfer : awaited_) {
    if (transfer->state == Transfer::State::computing && transfer->computed_by == MessageId{})
      transfer->computed_by = message;
  }
  for (Follower& follower : followers_) {
    if (follower.message == MessageId{}) follower.message = message;
  }
}

void Gathering::computed(MessageId message) {
  std::erase_if(awaited_, [&](Transfer* transfer) {
    const bool over = transfer->state == Transfer::State::computing && transfer->computed_by == message;
    if (over) {
      --transfer->waiting;
      transfer->gathering = nullptr;
      context_.transfers.close(*transfer);
    }
    return over;
  });
}

void Gathering::took(std::span<const uint32_t> neurons) {
  took_some_ = true;
  for (const uint32_t neuron : neurons) {
    Transfer* const transfer = source_[neuron];
    if (transfer == nullptr) continue;
    if (transfer->shared) ++transfer->taken;
    if (transfer->shared || --transfer->left != 0) continue;
    leave(*transfer);
    context_.transfers.close(*transfer);
  }
}

void Gathering::release_all_but(std::span<const uint32_t> neurons) {
  std::vector<const Transfer*> in_use;
  for (const uint32_t neuron : neurons) in_use.push_back(source_[neuron]);
  for (Transfer* transfer : std::vector(awaited_)) {
    if (transfer->into_arena() || std::ranges::find(in_use, transfer) != in_use.end()) continue;
    for (const uint32_t neuron : transfer->neurons) {
      if (source_[neuron] == transfer) source_[neuron] = nullptr;
    }
    leave(*transfer);
  }
}

void Gathering::stop() {
  context_.admission.drop(list_);
  context_.sources.leave(list_);
}

void Gathering::end(std::vector<Transfer*>& surplus) {
  context_.residency.unpin(demand_.edition, pinned_);
  pinned_.clear();
  resident_.clear();
  stop();
  list_.neurons.clear();
  list_.next = 0;
  for (Transfer* transfer : awaited_) {
    transfer->gathering = nullptr;
    if (--transfer->waiting == 0) surplus.push_back(transfer);
  }
  awaited_.clear();
  followers_.clear();
}

// What has landed in the arena needs its transfer no more. It is pinned until the end, so that it is not
// evicted before it is computed or handed on.
void Gathering::landed(Transfer& transfer) {
  if (notes_places()) note_places(transfer);
  const auto follows = follower(transfer);
  const bool followed = follows != followers_.end();
  const MessageId computed_by = followed ? follows->message : MessageId{};
  if (followed) followers_.erase(follows);
  if (!transfer.into_arena()) {
    if (followed && transfer.left == 0) {
      transfer.state = Transfer::State::computing;
      transfer.computed_by = computed_by;
    }
    return;
  }
  const size_t before = pinned_.size();
  for (const uint32_t neuron : transfer.neurons) {
    if (source_[neuron] != &transfer) continue;
    source_[neuron] = nullptr;
    pinned_.push_back(neuron);
  }
  const std::span<const uint32_t> here = std::span(pinned_).subspan(before);
  context_.residency.pin(demand_.edition, here);
  if (!followed) resident_.insert(resident_.end(), here.begin(), here.end());
  leave(transfer);
}

void Gathering::failed(Transfer& transfer, const Error& error) {
  std::erase_if(followers_, [&](const Follower& follower) { return follower.transfer == &transfer; });
  leave(transfer);
  if (status_.ok()) status_ = error;
}

Status Gathering::status() const {
  TIERD_TRY(status_);
  return Sources::status(list_);
}

void Gathering::note_places(const Transfer& transfer) {
  context_.transfers.each_place(transfer, [&](uint32_t neuron, uint32_t place) {
    if (source_[neuron] == &transfer) places_[neuron] = place;
  });
}

}  // namespace tierd
