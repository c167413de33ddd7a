#include "core/kernel/supply/transfers.h"

#include <algorithm>
#include <utility>

#include "core/base/align.h"
#include "core/base/check.h"

namespace tierd {
namespace {

// Returns how many blocks look-ahead leaves free: one, so that a demand never waits for the compute of a
// later site, nor of a later stretch (see sort_by_stretches); of many blocks some more, so that one is
// fetched while another is computed.
uint32_t left_to_demand(uint32_t blocks) {
  return std::clamp(blocks / 8, 1u, 4u);
}

// The bytes of one message of a pass that waits, where it can begin with the first stretches: a disk reads
// them in some tenths of a millisecond, which is the time of a few hand-overs.
constexpr uint32_t kDemandedBytes = 512u << 10;

// Returns how many neurons a block and a message must have room for at once.
uint32_t together(const Site& site) {
  return std::min(site.n, site.stretch);
}

}  // namespace

Transfers::Transfers(const SupplyContext& context, Admission& admission, Sources& sources,
                     const Options& options)
    : context_(context),
      admission_(admission),
      sources_(sources),
      most_attempts_(options.attempts),
      messages_(context, options.describe_extent, *this),
      staging_(context.memory().staging_blocks, context.memory().block_bytes),
      demand_blocks_(left_to_demand(staging_.blocks())) {
  const SiteTable& sites = context.sites;
  for (EditionId e = 0; e < sites.editions.size(); ++e)
    arena_slots_.emplace_back(context.memory().arena_offset[e], sites.editions[e].slot_bytes);
  for (const Site& site : sites) {
    for (const EditionId edition : site.editions)
      TIERD_CHECK(together(site) <= std::min(most_in_block(context.memory().held_as(edition)), most_units()));
  }
}

Transfers::~Transfers() = default;

// A step passes through its sites in their order: the gathering of a pass that the step is behind will not
// come.
void Transfers::begin_pass(SiteId site, uint32_t step) {
  over_before_ = position(site, step);
  messages_.set_step(step);
  const auto passed = [&](const Transfer* transfer) {
    return transfer->purpose.step == step && is_over(transfer->purpose) && !transfer->into_arena() &&
           transfer->state != Transfer::State::abandoned;
  };
  if (std::ranges::none_of(open_, passed)) return;
  for (Transfer* transfer : std::vector(open_)) {
    if (passed(transfer)) give_up(*transfer);
  }
}

void Transfers::end_step(uint32_t step) {
  over_before_ = position(0, step + 1);
  for (Transfer* transfer : std::vector(open_)) {
    if (transfer->purpose.step <= step && !transfer->into_arena()) give_up(*transfer);
  }
}

void Transfers::give_up_all() {
  over_before_ = UINT64_MAX;
  for (Transfer* transfer : std::vector(open_)) give_up(*transfer);
}

template <class Kind>
Kind& Transfers::Pool<Kind>::take() {
  if (unused.empty()) return all.emplace_back();
  Kind& kind = *unused.back();
  unused.pop_back();
  return kind;
}

// An unused transfer is as it was when it was closed: without an offer or a waiter.
template <class Kind>
Kind& Transfers::open(Pool<Kind>& pool, const FetchList& list, uint8_t source) {
  Kind& transfer = pool.take();
  transfer.purpose = list.purpose;
  transfer.edition = list.edition;
  transfer.priority = list.priority;
  transfer.source = source;
  transfer.attempts = 0;
  transfer.neurons.clear();
  if (!list.below.empty() && list.below[source] != nullptr) {
    transfer.below = list.below[source];
    transfer.below->hold();
  }
  open_.push_back(&transfer);
  started_.push_back(&transfer);
  return transfer;
}

// Opens a transfer for neurons that are kept, and have a source, like this one. `beside`: it fills another
// part of that one's block.
Transfer& Transfers::open(const FetchList& list, const ToFetch& like, const BlockTransfer* beside) {
  if (like.keep) return open(arena_, list, like.source);
  BlockTransfer& transfer = open(blocks_, list, like.source);
  transfer.first = 0;
  transfer.shared.reset();
  if (beside == nullptr) {
    transfer.block = staging_.lease();
  } else {
    transfer.block = beside->block;
    staging_.share(transfer.block);
  }
  return transfer;
}

bool Transfers::start(FetchList& list) {
  started_.clear();
  if (list.any_order) {
    start_in_order(list);
  } else {
    start_by_stretches(list);
  }
  if (list.waiter != nullptr) {
    for (Transfer* transfer : started_)
      transfer->waiting.push_back({list.waiter, list.waiter->started(*transfer)});
  }
  return !started_.empty();
}

bool Transfers::start_all(FetchList& list) {
  while (!list.done()) {
    if (!start(list)) return false;
  }
  return true;
}

void Transfers::start_by_stretches(FetchList& list) {
  const Site& site = context_.sites[list.purpose.site];
  asked_.clear();
  ask(list);
  const uint32_t demanded = kDemandedBytes / context_.sites.editions[list.edition].slot_bytes;
  // Where the free blocks do not hold everything in such pieces, the pieces are larger, so that everything is
  // read at once: if the rest were read behind the first stretch, the disk would be idle while that one is
  // computed.
  const size_t left = list.neurons.size() - list.next, blocks = std::max(1U, staging_.free_blocks());
  const size_t share = left > blocks * demanded ? divide_up(left, blocks) + together(site) : demanded;
  asked_.front().most = std::min(asked_.front().most, std::max<size_t>(together(site), share));
  start_stretches();
}

// The memory below fetches in an order of its own, and its neurons keep their blocks until they were fetched
// from there: a transfer that waited for the next neuron of this list's order might wait for ever. False: no
// neuron is ready.
bool Transfers::put_ready_in_front(FetchList& list) {
  size_t ready = list.next;
  while (ready != list.neurons.size() && !list.ready(ready)) ++ready;
  if (ready == list.neurons.size()) return false;
  const auto at = [&](size_t i) { return list.neurons.begin() + static_cast<std::ptrdiff_t>(i); };
  std::rotate(at(list.next), at(ready), at(ready + 1));
  return true;
}

void Transfers::start_in_order(FetchList& list) {
  if (!messages_.can_post() || !put_ready_in_front(list)) return;
  const ToFetch& first = list.neurons[list.next];
  if (!first.keep && staging_.free_blocks() < 1 + spare(list.priority)) return;
  Transfer& transfer = open(list, first);
  const size_t end =
      std::min(list.neurons.size(), list.next + std::min(most_in_block(list.edition), most_units()));
  for (; list.next != end; ++list.next) {
    const ToFetch& of = list.neurons[list.next];
    if (of.keep != first.keep || of.source != first.source || !list.ready(list.next)) break;
    transfer.neurons.push_back(of.neuron);
  }
  post_started();
}

bool Transfers::start(Wish& wish) {
  started_.clear();
  asked_.clear();
  for (FetchList& part : wish.parts) {
    if (!part.done()) ask(part);
  }
  const size_t blocks = staging_.blocks();
  size_t most = std::min<size_t>(blocks > demand_blocks_ ? blocks - demand_blocks_ : 1,
                                 most_units() / together(context_.sites[asked_.front().list->purpose.site]));
  // Neurons that are contiguous in the file are not so in another memory, whose slots have the size of one
  // edition.
  if (!messages_.from_store_alone()) most = 1;
  if (asked_.size() > most) asked_.resize(std::max<size_t>(1, most));
  FetchList& first = *asked_.front().list;
  if (asked_.size() == 1 && first.any_order) {
    start_in_order(first);
  } else {
    start_stretches();
  }
  for (Transfer* transfer : started_) {
    BlockTransfer* const block = in_block(*transfer);
    if (block != nullptr && !context_.is_computed_from()) block->shared.emplace();
  }
  return !started_.empty();
}

// Starts the next transfers of the lists in `asked_`. The neurons of each list that pass through staging take
// a block; kept ones are among them in the file, and are fetched by the same read.
void Transfers::start_stretches() {
  if (!messages_.can_post()) return;
  const FetchList& first = *asked_.front().list;
  take_stretches(asked_, context_.sites[first.purpose.site].stretch, most_units());
  const auto blocks = std::ranges::count_if(asked_, &NextStretches::takes_streams);
  if (blocks != 0 && staging_.free_blocks() < static_cast<uint32_t>(blocks) + spare(first.priority)) return;
  for (const NextStretches& asked : asked_) {
    open_taken(asked);
    asked.list->next = asked.end;
  }
  post_started();
}

// Opens transfers for the stretches that were taken of one list: for kept neurons apart from those that pass
// through staging, and for each source by itself. Neurons that pass through staging fill one block, one
// source behind the other.
void Transfers::open_taken(const NextStretches& asked) {
  const size_t before = started_.size();
  const auto opened = [&] { return std::span(started_).subspan(before); };
  const auto transfer_for = [&](const ToFetch& taken) -> Transfer& {
    const BlockTransfer* beside = nullptr;
    for (Transfer* const transfer : opened()) {
      if (transfer->into_arena() != taken.keep) continue;
      if (transfer->source == taken.source) return *transfer;
      if (beside == nullptr) beside = in_block(*transfer);
    }
    return open(*asked.list, taken, beside);
  };
  Transfer* last = nullptr;
  const ToFetch* like = nullptr;
  for (const ToFetch& taken : asked.taken()) {
    if (last == nullptr || like->keep != taken.keep || like->source != taken.source)
      last = &transfer_for(taken);
    like = &taken;
    last->neurons.push_back(taken.neuron);
  }
  uint32_t first = 0;
  for (Transfer* const transfer : opened()) {
    BlockTransfer* const block = in_block(*transfer);
    if (block == nullptr) continue;
    block->first = first;
    first += static_cast<uint32_t>(block->neurons.size());
  }
}

// Posts a message for each source.
void Transfers::post_started() {
  for (Transfer* transfer : started_) set_places(*transfer);
  if (messages_.from_store_alone()) {
    if (!started_.empty()) messages_.post(started_);
    return;
  }
  std::ranges::stable_sort(started_, {}, &Transfer::source);
  for (size_t begin = 0, end = 0; begin != started_.size(); begin = end) {
    while (end != started_.size() && started_[end]->source == started_[begin]->source) ++end;
    messages_.post(std::span(started_).subspan(begin, end - begin));
  }
}

void Transfers::set_places(Transfer& transfer) const {
  const EditionId edition = transfer.edition;
  transfer.places.resize(transfer.neurons.size());
  if (const BlockTransfer* const into = in_block(transfer); into != nullptr) {
    const Slots slots(context_.memory().staging_offset + uint64_t{into->block} * staging_.block_bytes(),
                      context_.sites.editions[edition].slot_bytes);
    for (uint32_t i = 0; i < transfer.places.size(); ++i) transfer.places[i] = slots.at(into->first + i);
  } else {
    const std::span<const Residency::Neuron> all = context_.residency.neurons(edition);
    std::ranges::transform(transfer.neurons, transfer.places.begin(),
                           [&](uint32_t neuron) { return arena_place(edition, all[neuron].slot); });
  }
}

// For the second of some transfers that shared a message and failed there may be no message slot yet.
void Transfers::try_again() {
  for (size_t i = 0; failed_ != 0 && i < open_.size(); ++i) {
    if (open_[i]->state != Transfer::State::failed) continue;
    if (!context_.dispatcher.can_post()) return;
    --failed_;
    messages_.post({&open_[i], 1});
  }
}

void Transfers::demand(Transfer& transfer) {
  transfer.priority = Priority::demand;
  messages_.raise(transfer);
}

void Transfers::on_done(const Message& message, const Done& done) {
  messages_.ended(message, done, ended_);
  for (const Transfer* transfer : ended_) {
    for (const auto& [waiter, number] : transfer->waiting) waiter->message_ended(done);
  }
  const bool alone = ended_.size() == 1;
  for (Transfer* transfer : ended_) {
    if (done.status != DoneStatus::ok) {
      failed(*transfer, done, alone);
      continue;
    }
    sources_.leave(*transfer);
    if (BlockTransfer* const block = in_block(*transfer); block != nullptr) {
      landed(*block);
    } else {
      landed(static_cast<ArenaTransfer&>(*transfer));
    }
  }
  context_.dispatcher.wake(context_.changed);
}

void Transfers::landed(ArenaTransfer& transfer) {
  admission_.landed(transfer.edition, transfer.neurons);
  for (const auto& [waiter, number] : transfer.waiting) waiter->landed(transfer, number);
  transfer.waiting.clear();
  close(transfer);
}

void Transfers::landed(BlockTransfer& transfer) {
  const bool wanted = std::exchange(transfer.state, Transfer::State::landed) != Transfer::State::abandoned;
  if (!wanted) return waste(transfer);
  for (const auto& [waiter, number] : transfer.waiting) waiter->landed(transfer, number);
}

// The message has failed, or was cancelled before a pass came to want the transfer. `alone`: it fetched
// nothing else, so that the fault is the transfer's own; else the transfer has not been tried yet by itself.
void Transfers::failed(Transfer& transfer, const Done& done, bool alone) {
  using Retry = TransferWaiter::Retry;
  Retry retry = Retry::needless;
  for (const auto& [waiter, number] : transfer.waiting) retry = std::max(retry, waiter->retry(number));
  const bool wanted = retry != Retry::needless;
  if (done.status != DoneStatus::cancelled && !wanted) ++context_.counters.prefetch_failed;
  if (!alone && wanted) --transfer.attempts;
  const bool again = done.status != DoneStatus::lost && transfer.attempts < most_attempts_;
  if (wanted && again && retry != Retry::impossible) {
    if (done.status != DoneStatus::cancelled) ++context_.counters.retries;
    if (retry == Retry::as_demand) transfer.priority = Priority::demand;
    transfer.state = Transfer::State::failed;
    ++failed_;
    return try_again();
  }
  const Error error = messages_.error(transfer, done);
  if (transfer.into_arena()) admission_.failed(transfer.edition, transfer.neurons);
  for (const auto& [waiter, number] : transfer.waiting) waiter->failed(number, error);
  transfer.waiting.clear();
  sources_.leave(transfer);
  close(transfer);
}

bool Transfers::leave(Transfer& transfer, const TransferWaiter& waiter) {
  std::erase_if(transfer.waiting, [&](const Transfer::Waiting& of) { return of.waiter == &waiter; });
  return transfer.waiting.empty();
}

void Transfers::give_up(Transfer& transfer) {
  BlockTransfer* const block = in_block(transfer);
  if (!transfer.waiting.empty()) return;
  if (block != nullptr && block->shared && !is_over(transfer.purpose)) return;
  switch (transfer.state) {
    case Transfer::State::moving:
      if (block == nullptr) return;
      transfer.state = Transfer::State::abandoned;
      return messages_.cancel(transfer);
    case Transfer::State::abandoned:
      return;
    case Transfer::State::failed:
      --failed_;
      if (block == nullptr) admission_.failed(transfer.edition, transfer.neurons);
      return waste(transfer);
    case Transfer::State::landed:
      return waste(transfer);
  }
}

void Transfers::give_up(std::span<Transfer* const> transfers) {
  for (Transfer* transfer : transfers) give_up(*transfer);
}

// Closes a transfer of which not all was used.
void Transfers::waste(Transfer& transfer) {
  if (const BlockTransfer* const block = in_block(transfer); block != nullptr) {
    const uint64_t all = transfer.neurons.size();
    context_.counters.wasted += all - std::min<uint64_t>(all, block->shared ? block->shared->taken : 0);
  }
  sources_.leave(transfer);
  close(transfer);
}

void Transfers::close(BlockTransfer& transfer) {
  close(static_cast<Transfer&>(transfer));
}

void Transfers::close(Transfer& transfer) {
  TIERD_CHECK(transfer.below == nullptr && transfer.waiting.empty());
  open_.erase(std::ranges::find(open_, &transfer));
  if (BlockTransfer* const block = in_block(transfer); block != nullptr) {
    staging_.give_back(block->block);
    blocks_.unused.push_back(block);
  } else {
    arena_.unused.push_back(static_cast<ArenaTransfer*>(&transfer));
  }
}

}  // namespace tierd
