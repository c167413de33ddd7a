#include "core/kernel/supply/arrivals.h"

#include <algorithm>
#include <utility>

namespace tierd {

Arrivals::Arrivals(const SupplyContext& context, Transfers& transfers)
    : context_(context),
      transfers_(transfers),
      source_(context.sites.most_neurons(), kNone),
      places_(context.sites.most_neurons(), Offer::kNowhere) {}

void Arrivals::begin(const GatherRequest& request, bool passes_on, std::vector<uint32_t>& absent) {
  request_ = &request;
  notes_places_ = passes_on || added();
  follows_ = transfers_.messages().moves(request.agent);
  next_ = 0;
  status_ = {};
  context_.residency.pin_valid(request.edition, wanted(), resident_, absent);
  pinned_.assign(resident_.begin(), resident_.end());
  for (const uint32_t neuron : absent) places_[neuron] = Offer::kNowhere;
}

uint32_t Arrivals::join(Transfer& transfer) {
  const auto known = std::ranges::find(transfer.waiting, this, &Transfer::Waiting::waiter);
  if (known != transfer.waiting.end()) return known->number;
  const auto number = static_cast<uint32_t>(awaited_.size());
  const bool landed = transfer.state == Transfer::State::landed;
  awaited_.push_back({&transfer, landed ? Stage::here : Stage::coming});
  transfer.waiting.push_back({this, number});
  return number;
}

void Arrivals::expect(uint32_t neuron, uint32_t number) {
  source_[neuron] = number;
  sourced_.push_back(neuron);
  ++awaited_[number].left;
}

void Arrivals::note_places() {
  if (!notes_places_) return;
  const EditionId edition = request_->edition;
  const std::span<const Residency::Neuron> all = context_.residency.neurons(edition);
  for (const uint32_t neuron : resident_) places_[neuron] = transfers_.arena_place(edition, all[neuron].slot);
  for (uint32_t number = first_; number < awaited_.size(); ++number) {
    const Awaited& awaited = awaited_[number];
    if (awaited.stage == Stage::here || can_follow(*awaited.transfer)) note_places(number);
  }
}

void Arrivals::note_places(uint32_t number) {
  const Transfer& transfer = *awaited_[number].transfer;
  for (size_t i = 0; i < transfer.neurons.size(); ++i) {
    if (source_[transfer.neurons[i]] == number) places_[transfer.neurons[i]] = transfer.places[i];
  }
}

void Arrivals::end(std::vector<Transfer*>& surplus) {
  context_.residency.unpin(request_->edition, pinned_);
  pinned_.clear();
  resident_.clear();
  for (Awaited& awaited : awaited_) {
    Transfer* const transfer = awaited.transfer;
    if (transfer != nullptr && leave(awaited)) surplus.push_back(transfer);
  }
  awaited_.clear();
  first_ = 0;
  for (const uint32_t neuron : sourced_) source_[neuron] = kNone;
  sourced_.clear();
}

bool Arrivals::leave(Awaited& awaited) {
  return transfers_.leave(*std::exchange(awaited.transfer, nullptr), *this);
}

// Advances `first_`, so that what has ended is not looked at again.
void Arrivals::skip_ended() {
  while (first_ != awaited_.size() && awaited_[first_].transfer == nullptr) ++first_;
}

uint32_t Arrivals::started(Transfer& transfer) {
  const auto number = static_cast<uint32_t>(awaited_.size());
  awaited_.push_back({&transfer});
  for (const uint32_t neuron : transfer.neurons) expect(neuron, number);
  if (notes_places_ && can_follow(transfer)) note_places(number);
  return number;
}

void Arrivals::landed(const Transfer& transfer, uint32_t number) {
  if (notes_places_) note_places(number);
  if (transfer.into_arena()) return arrive(transfer, number);
  Awaited& awaited = awaited_[number];
  awaited.stage = awaited.stage == Stage::followed && awaited.left == 0 ? Stage::used : Stage::here;
}

// Neurons that have landed in the arena need their transfer no more. They are pinned until the end, so that
// they are not evicted before they are computed or fetched from here.
void Arrivals::arrive(const Transfer& transfer, uint32_t number) {
  const size_t before = pinned_.size();
  for (const uint32_t neuron : transfer.neurons) {
    if (source_[neuron] != number) continue;
    source_[neuron] = kNone;
    pinned_.push_back(neuron);
  }
  const std::span<const uint32_t> here = std::span(pinned_).subspan(before);
  context_.residency.pin(request_->edition, here);
  Awaited& awaited = awaited_[number];
  awaited.transfer = nullptr;
  if (awaited.stage != Stage::followed) resident_.insert(resident_.end(), here.begin(), here.end());
  skip_ended();
}

// A run that was posted behind a move is cancelled when the move fails, so that another attempt comes too
// late.
TransferWaiter::Retry Arrivals::retry(uint32_t number) const {
  if (awaited_[number].stage == Stage::followed) return Retry::impossible;
  return request_->priority == Priority::prefetch ? Retry::needless : Retry::as_demand;
}

void Arrivals::failed(uint32_t number, const Error& error) {
  awaited_[number].transfer = nullptr;
  if (status_.ok()) status_ = error;
}

// Whether the agent that computes from the memory moves the neurons there, so that its run can be told to
// wait for them. A read of that agent is not followed: if it fails it is tried again, which is impossible for
// a move that is followed (docs/messages.md).
bool Arrivals::can_follow(const Transfer& transfer) const {
  return follows_ && transfer.state == Transfer::State::moving && transfer.priority == Priority::demand &&
         transfers_.messages().mover(transfer) == request_->agent;
}

void Arrivals::hand_out(Awaited& awaited, Stage stage) {
  awaited.stage = stage;
  awaited.computed_by = {};
}

// Neurons of the transfer that are not wanted are left out, as are those that a site which shares the edition
// has fetched meanwhile.
void Arrivals::append(uint32_t number, std::vector<Unit>& units) const {
  const Transfer& transfer = *awaited_[number].transfer;
  for (size_t i = 0; i < transfer.neurons.size(); ++i) {
    if (source_[transfer.neurons[i]] == number) units.push_back({transfer.neurons[i], transfer.places[i]});
  }
}

MessageId Arrivals::hand_out(std::vector<Unit>& units) {
  if (added()) return hand_out_stretches(units);
  const EditionId edition = request_->edition;
  const std::span<const Residency::Neuron> all = context_.residency.neurons(edition);
  units.resize(resident_.size());
  std::ranges::transform(resident_, units.begin(), [&](uint32_t neuron) {
    return Unit{neuron, transfers_.arena_place(edition, all[neuron].slot)};
  });
  resident_.clear();
  for (uint32_t number = first_; number < awaited_.size(); ++number) {
    Awaited& awaited = awaited_[number];
    if (awaited.transfer == nullptr || awaited.stage != Stage::here) continue;
    if (!units.empty() && units.size() + awaited.transfer->neurons.size() > context_.dispatcher.max_units())
      break;
    hand_out(awaited, Stage::used);
    append(number, units);
  }
  return {};
}

MessageId Arrivals::hand_out_moving(std::vector<Unit>& units) {
  MessageId move;
  for (uint32_t number = first_; follows_ && number < awaited_.size(); ++number) {
    Awaited& awaited = awaited_[number];
    if (awaited.transfer == nullptr || awaited.stage == Stage::followed) continue;
    if (!can_follow(*awaited.transfer)) continue;
    if (move != MessageId{} && awaited.transfer->message != move) continue;
    move = awaited.transfer->message;
    hand_out(awaited, Stage::followed);
    awaited.left = 0;
    append(number, units);
  }
  return move;
}

MessageId Arrivals::hand_out_stretches(std::vector<Unit>& units) {
  MessageId move;
  while (next_ != wanted().size()) {
    MessageId of_stretch;
    const uint32_t end = end_of_stretch(of_stretch);
    if (end == kNone) return move;
    if (!units.empty() && of_stretch != MessageId{} && of_stretch != move) return move;
    if (!units.empty() && units.size() + (end - next_) > context_.dispatcher.max_units()) return move;
    if (of_stretch != MessageId{}) move = of_stretch;
    for (; next_ != end; ++next_) {
      const uint32_t neuron = wanted()[next_];
      units.push_back({neuron, places_[neuron]});
      if (source_[neuron] == kNone) continue;
      Awaited& awaited = awaited_[source_[neuron]];
      --awaited.left;
      if (awaited.transfer->state == Transfer::State::moving) {
        hand_out(awaited, Stage::followed);
      } else if (awaited.left == 0) {
        hand_out(awaited, Stage::used);
      }
    }
  }
  resident_.clear();
  return move;
}

// Returns the end in `wanted` of the stretch that begins at `next_`, or kNone where it cannot be handed out
// yet. `move`: the one message that brings neurons of it that are on their way.
uint32_t Arrivals::end_of_stretch(MessageId& move) const {
  const uint32_t in_stretch = site().stretch;
  const uint32_t stretch = wanted()[next_] / in_stretch;
  uint32_t end = next_;
  for (; end != wanted().size() && wanted()[end] / in_stretch == stretch; ++end) {
    const uint32_t neuron = wanted()[end];
    if (places_[neuron] == Offer::kNowhere) return kNone;
    if (source_[neuron] == kNone) continue;
    const Awaited& awaited = awaited_[source_[neuron]];
    if (awaited.stage == Stage::here) continue;
    if (awaited.transfer == nullptr || !can_follow(*awaited.transfer)) return kNone;
    if (move != MessageId{} && move != awaited.transfer->message) return kNone;
    move = awaited.transfer->message;
  }
  return end;
}

bool Arrivals::handed_out() const {
  if (added()) return next_ == wanted().size();
  return resident_.empty() && std::ranges::all_of(std::span(awaited_).subspan(first_), [](const Awaited& of) {
           return of.transfer == nullptr || of.stage == Stage::used || of.stage == Stage::followed;
         });
}

void Arrivals::computed_by(MessageId message) {
  for (Awaited& awaited : std::span(awaited_).subspan(first_)) {
    const bool handed_out = awaited.stage == Stage::used || awaited.stage == Stage::followed;
    if (handed_out && awaited.computed_by == MessageId{}) awaited.computed_by = message;
  }
}

void Arrivals::computed(MessageId message) {
  for (Awaited& awaited : std::span(awaited_).subspan(first_)) {
    if (awaited.transfer == nullptr || awaited.stage != Stage::used || awaited.computed_by != message)
      continue;
    BlockTransfer& block = *in_block(*awaited.transfer);
    (void)leave(awaited);
    transfers_.close(block);
  }
  skip_ended();
}

void Arrivals::took(std::span<const uint32_t> neurons) {
  for (const uint32_t neuron : neurons) {
    if (source_[neuron] == kNone) continue;
    Awaited& awaited = awaited_[source_[neuron]];
    BlockTransfer& block = *in_block(*awaited.transfer);
    if (block.shared) {
      ++block.shared->taken;
    } else if (--awaited.left == 0) {
      (void)leave(awaited);
      transfers_.close(block);
    }
  }
}

void Arrivals::release_all_but(std::span<const uint32_t> neurons) {
  std::vector<uint8_t> in_use(awaited_.size(), 0);
  for (const uint32_t neuron : neurons) {
    if (source_[neuron] != kNone) in_use[source_[neuron]] = 1;
  }
  for (uint32_t number = first_; number < awaited_.size(); ++number) {
    Awaited& awaited = awaited_[number];
    if (awaited.transfer == nullptr || awaited.transfer->into_arena() || in_use[number] != 0) continue;
    for (const uint32_t neuron : awaited.transfer->neurons) {
      if (source_[neuron] == number) source_[neuron] = kNone;
    }
    (void)leave(awaited);
  }
}

}  // namespace tierd
