#include "core/kernel/supply/spare_time.h"

#include <algorithm>

namespace tierd {
namespace {

// The bytes of one message, or one neuron: 20 us of a link of 25 GB/s.
constexpr uint64_t kAtOnceBytes = 512 << 10;

}  // namespace

Status SpareTime::start() {
  while (!asked_.empty()) {
    if (!transfers_.messages().can_post() || under_way_ != 0) return {};
    Asked& asked = asked_.front();
    take_some(asked);
    if (!some_.empty()) TIERD_TRY(start_some(asked));
    if (asked.next == asked.wanted.neurons.size()) asked_.pop_front();
  }
  return {};
}

// Takes the next neurons that can be fetched, as many as a message should list.
void SpareTime::take_some(Asked& asked) {
  const auto& [edition, neurons] = asked.wanted;
  const uint64_t most = std::max<uint64_t>(1, kAtOnceBytes / context_.sites.editions[edition].slot_bytes);
  some_.clear();
  for (; asked.next < neurons.size() && some_.size() < most; ++asked.next) {
    const uint32_t neuron = neurons[asked.next];
    if (context_.residency.slot(edition, neuron) == kNoSlot && sources_.next_to(edition, neuron))
      some_.push_back(neuron);
  }
}

Status SpareTime::start_some(const Asked& asked) {
  const EditionId edition = asked.wanted.edition;
  FetchList list{.purpose = {context_.sites.editions[edition].owner, kNoStep, context_.id},
                 .edition = edition,
                 .priority = Priority::migration,
                 .any_order = true,
                 .waiter = this};
  TIERD_TRY(admission_.admit(some_, list));
  // A neuron that may not stay is not worth its message.
  std::erase_if(list.neurons, [](const ToFetch& of) { return !of.keep; });
  list.bypass = true;
  Status found = sources_.find(list);
  moves_home_ = asked.moves_home;
  if (found.ok()) (void)transfers_.start_all(list);
  admission_.drop(list);
  sources_.leave(list);
  return found;
}

// A transfer that has failed, and that a pass wanted as well, waits for that pass alone.
void SpareTime::end() {
  asked_.clear();
  if (under_way_ == 0) return;
  for (Transfer* const transfer : std::vector(transfers_.all())) {
    if (transfer->state != Transfer::State::failed || !transfer->is_awaited_by(*this)) continue;
    --under_way_;
    if (transfers_.leave(*transfer, *this)) transfers_.give_up(*transfer);
  }
}

uint32_t SpareTime::started(Transfer& /*transfer*/) {
  return under_way_++;
}

void SpareTime::message_ended(const Done& done) {
  moves_.push_back({done.start_ns, done.done_ns, done.n_done, done.bytes});
}

void SpareTime::landed(const Transfer& transfer, uint32_t /*number*/) {
  if (moves_home_) move_home(transfer);
  --under_way_;
}

void SpareTime::failed(uint32_t /*number*/, const Error& /*error*/) {
  --under_way_;
}

// Editions that are made of the transfer's are at home where that one is.
void SpareTime::move_home(const Transfer& transfer) {
  const std::vector<Edition>& editions = context_.sites.editions;
  const auto unit = static_cast<uint8_t>(context_.topology.unit_of(context_.id));
  for (EditionId e = 0; e < editions.size(); ++e) {
    if (e != transfer.edition && editions[e].made_of != transfer.edition) continue;
    for (const uint32_t neuron : transfer.neurons) placement_.move(e, neuron, unit);
  }
}

}  // namespace tierd
