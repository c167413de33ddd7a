#include "core/kernel/supply/gathering.h"

#include <algorithm>
#include <utility>

#include "core/kernel/supply/stretches.h"

namespace tierd {

Status Gathering::begin(GatherRequest&& request) {
  request_ = std::move(request);
  took_some_ = false;
  list_.purpose = request_.purpose;
  list_.edition = request_.edition;
  list_.priority = request_.priority;
  list_.bypass = request_.bypass;
  list_.any_order = !context_.sites[request_.purpose.site].added;
  list_.waiter = &arrivals_;
  Scratch& scratch = shared_.scratch;
  scratch.usable.clear();
  scratch.surplus.clear();
  for (Transfer* transfer : shared_.transfers.all()) {
    if (!is_usable(*transfer)) continue;
    for (const uint32_t neuron : transfer->neurons) scratch.coming[neuron] = transfer;
    scratch.usable.push_back(transfer);
  }
  if (!passes_on()) take_over_wish();
  if (!context_.is_computed_from()) withdraw_from_wish();
  sort_absent();
  for (const ToFetch& of : list_.neurons) scratch.listed[of.neuron] = 0;
  for (const Transfer* transfer : scratch.usable) {
    for (const uint32_t neuron : transfer->neurons) scratch.coming[neuron] = nullptr;
  }
  adopt_transfers();
  arrivals_.note_places();
  const Status begun = admit();
  shared_.transfers.give_up(scratch.surplus);
  return begun;
}

// Asks the cache and the sources about neurons that are missing.
Status Gathering::admit() {
  const size_t asked_from = list_.neurons.size();
  TIERD_TRY(shared_.admission.admit(shared_.scratch.missing, list_));
  note_refused(asked_from);
  if (!list_.any_order) sort_by_stretches(context_.sites[request_.purpose.site].stretch, list_);
  return shared_.sources.find(list_);
}

// Whether a transfer fetches neurons that may be of use. A block that is not shared is for the gathering that
// waits for it.
bool Gathering::is_usable(const Transfer& transfer) const {
  if (transfer.state == Transfer::State::abandoned || transfer.edition != request_.edition) return false;
  const BlockTransfer* const block = in_block(transfer);
  if (block == nullptr) return true;
  const auto& [site, step, client] = request_.purpose;
  if (block->shared) return transfer.purpose.site == site && transfer.purpose.step == step;
  return transfer.purpose == request_.purpose && transfer.waiting.empty();
}

// Makes the neurons of a wish that were not fetched in time part of the list, as far as they are wanted.
void Gathering::take_over_wish() {
  const auto [site, step, client] = request_.purpose;
  const EditionId edition = request_.edition;
  Scratch& scratch = shared_.scratch;
  FetchList wish = shared_.wishes.take(site, edition, step);
  shared_.sources.hand_over(wish, shared_.transfers.all());
  for (; !wish.done(); ++wish.next) {
    const auto [neuron, keep, source] = wish.neurons[wish.next];
    // A site that shares the edition may have fetched the neuron since.
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

// Takes wanted neurons out of this memory's own wish for the pass, whose turn may come late.
void Gathering::withdraw_from_wish() {
  const auto [site, step, client] = request_.purpose;
  Scratch& scratch = shared_.scratch;
  scratch.withdrawn.clear();
  shared_.wishes.withdraw(site, request_.edition, step, wanted(), scratch.withdrawn);
  for (const auto& [neuron, keep, source] : scratch.withdrawn) {
    if (!keep && scratch.coming[neuron] != nullptr) continue;
    scratch.listed[neuron] = 1;
    list_.neurons.push_back({neuron, keep});
  }
}

// Pins valid neurons, joins the transfers of others, and leaves in `missing` those that the cache must be
// asked about.
void Gathering::sort_absent() {
  const EditionId edition = request_.edition;
  Scratch& scratch = shared_.scratch;
  std::vector<uint32_t>& missing = scratch.missing;
  missing.clear();
  arrivals_.begin(request_, passes_on(), missing);
  UseCounters& counters = passes_on() ? context_.counters.passed_on : context_.counters;
  counters.hits += count(arrivals_.resident(), counters.resident_bytes);
  (void)count(missing, counters.streamed_bytes);
  size_t to_ask = 0;
  const Transfer* last = nullptr;
  uint32_t number = 0;  // of the last transfer
  for (const uint32_t neuron : missing) {
    if (Transfer* const transfer = scratch.coming[neuron]; transfer != nullptr) {
      if (std::exchange(last, transfer) != transfer) number = arrivals_.join(*transfer);
      arrivals_.expect(neuron, number);
      ++counters.staged;
      continue;
    }
    if (!request_.uses(neuron)) {
      if (scratch.listed[neuron] == 0) list_.neurons.push_back({neuron, false});
      continue;
    }
    ++counters.misses;
    if (scratch.listed[neuron] != 0) continue;
    if (context_.residency.leased(edition, neuron)) {
      // Admitted for a later site that shares the edition (a tied head), and not fetched yet. A neuron that
      // is in another gathering's list is fetched twice.
      list_.neurons.push_back({neuron, shared_.wishes.claim(edition, neuron)});
      continue;
    }
    missing[to_ask++] = neuron;
  }
  missing.resize(to_ask);
}

// Returns how many of these neurons are used, and adds their bytes to `used_bytes`.
uint64_t Gathering::count(std::span<const uint32_t> neurons, uint64_t& used_bytes) {
  UseCounters& counters = passes_on() ? context_.counters.passed_on : context_.counters;
  const std::vector<uint32_t>& bytes = context_.sites.editions[request_.edition].bytes;
  uint64_t used = 0;
  for (const uint32_t neuron : neurons) {
    const bool is_used = request_.uses(neuron);
    used += is_used ? 1 : 0;
    (is_used ? used_bytes : counters.measured_bytes) += bytes[neuron];
  }
  return used;
}

void Gathering::adopt_transfers() {
  for (Transfer* transfer : shared_.scratch.usable) {
    const BlockTransfer* const block = in_block(*transfer);
    if (transfer->is_awaited_by(arrivals_)) {
      if (request_.priority == Priority::demand) shared_.transfers.demand(*transfer);
    } else if (block != nullptr && !block->shared) {
      shared_.scratch.surplus.push_back(transfer);
    }
  }
}

// Notes the missing neurons that are not in the list, which has the others in the order of `missing`.
void Gathering::note_refused(size_t asked_from) {
  refused_.clear();
  const std::vector<uint32_t>& missing = shared_.scratch.missing;
  if (list_.neurons.size() - asked_from == missing.size()) return;
  size_t admitted = asked_from;
  for (const uint32_t neuron : missing) {
    if (admitted != list_.neurons.size() && list_.neurons[admitted].neuron == neuron) {
      ++admitted;
    } else {
      refused_.push_back(neuron);
    }
  }
}

void Gathering::stop() {
  shared_.admission.drop(list_);
  shared_.sources.leave(list_);
}

void Gathering::end(bool gives_up) {
  std::vector<Transfer*> surplus;
  arrivals_.end(surplus);
  stop();
  list_.neurons.clear();
  list_.next = 0;
  if (passes_on() && took_some_ && !request_.bypass) shared_.admission.passed_on(request_.edition, wanted());
  if (gives_up) shared_.transfers.give_up(surplus);
}

void Gathering::took(std::span<const uint32_t> neurons) {
  took_some_ = true;
  arrivals_.took(neurons);
}

Status Gathering::status() const {
  TIERD_TRY(arrivals_.status());
  return Sources::status(list_);
}

}  // namespace tierd
