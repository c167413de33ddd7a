#include "core/kernel/supply/transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/align.h"
#include "core/base/check.h"

namespace tierd {
namespace {

// Blocks that look-ahead leaves free: one, so that a demand never waits for the compute of a later site, nor
// of a later run (see RunOrder); where there are many, some more, so that one is fetched while another is
// computed.
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

Transfers::Transfers(Dispatcher& dispatcher, const SiteTable& sites, const Residency& residency,
                     Options options, CompletionSink& sink)
    : dispatcher_(dispatcher),
      sites_(sites),
      residency_(residency),
      options_(std::move(options)),
      sink_(sink),
      staging_(options_.memory.staging_blocks, options_.memory.block_bytes),
      demand_blocks_(left_to_demand(staging_.blocks())) {
  for (EditionId e = 0; e < sites.editions.size(); ++e)
    arena_.push_back(places(options_.memory.arena_offset[e], sites.editions[e].slot_bytes));
  for (const Site& site : sites) {
    for (const EditionId edition : site.editions) {
      const EditionId held = options_.memory.held_as(edition);
      TIERD_CHECK(together(site) <= std::min(most_in_block(held), most_units()));
    }
  }
}

Transfer& Transfers::open(const FetchList& list, uint8_t source) {
  if (unused_.empty()) unused_.push_back(&all_.emplace_back());
  Transfer& transfer = *open_.emplace_back(unused_.back());
  unused_.pop_back();
  std::vector<uint32_t> neurons = std::move(transfer.neurons);  // for their memory
  neurons.clear();
  transfer = {.purpose = list.purpose,
              .edition = list.edition,
              .priority = list.priority,
              .source = source,
              .neurons = std::move(neurons)};
  if (!list.below.empty() && list.below[source] != nullptr) {
    transfer.below = list.below[source];
    transfer.below->hold();
  }
  started_.push_back(&transfer);
  return transfer;
}

void Transfers::close(Transfer& transfer) {
  TIERD_CHECK(transfer.below == nullptr && transfer.waiting == 0);
  if (!transfer.into_arena()) staging_.give_back(transfer.block);
  open_.erase(std::ranges::find(open_, &transfer));
  unused_.push_back(&transfer);
}

EditionId Transfers::edition_at_source(const Transfer& transfer) const {
  if (transfer.below != nullptr) return transfer.below->edition();
  const EditionId made_of = sites_.editions[transfer.edition].made_of;
  return made_of != kNoEdition ? made_of : transfer.edition;
}

// Appends what the agent is to fetch.
void Transfers::list(const Transfer& transfer) {
  if (transfer.below != nullptr) {
    const Offer& below = *transfer.below;
    return each_place(transfer, [&](uint32_t neuron, uint32_t place) {
      units_.push_back({below.place(neuron), place});
    });
  }
  const Edition& edition = sites_.editions[transfer.edition];
  each_place(transfer, [&](uint32_t neuron, uint32_t place) {
    units_.push_back({edition.extent_of(neuron), place});
  });
}

// The slots of an edition are as large as its largest neuron: only a neuron's own bytes are moved, to the end
// of their last place.
void Transfers::list_lengths(std::span<Transfer* const> transfers) {
  lengths_.clear();
  for (const Transfer* transfer : transfers) {
    const std::vector<uint32_t>& bytes = sites_.editions[edition_at_source(*transfer)].bytes;
    for (const uint32_t neuron : transfer->neurons)
      lengths_.push_back(static_cast<uint32_t>(align_up(bytes[neuron], kPlaceUnit)));
  }
}

void Transfers::post(std::span<Transfer* const> transfers) {
  units_.clear();
  for (Transfer* transfer : transfers) {
    list(*transfer);
    ++transfer->attempts;
    transfer->state = Transfer::State::moving;
  }
  const Transfer& first = *transfers.front();
  const From& from = options_.from[first.source];
  const EditionId comes_as = edition_at_source(first);
  Message message;
  message.op = from.memory == kStore ? Op::read : Op::move;
  message.priority = first.priority;
  message.agent = from.agent;
  message.lane = from.lane;
  message.from = from.memory;
  message.memory = options_.id;
  if (message.op == Op::move) message.unit_bytes = sites_.editions[comes_as].slot_bytes;
  const auto recoded = [&](const Transfer* of) { return edition_at_source(*of) != of->edition; };
  if (std::ranges::any_of(transfers, recoded)) message.flags = kRecode;
  message.step = present_step_;
  message.site = first.purpose.site;
  message.edition = first.edition;
  if (first.priority == Priority::prefetch) message.expires_step = first.purpose.step;
  Payload payload{.units = units_};
  if (message.op == Op::move && message.flags == kRecode) {
    neurons_.clear();
    for (const Transfer* of : transfers)
      neurons_.insert(neurons_.end(), of->neurons.begin(), of->neurons.end());
    payload.neurons = neurons_;
  }
  if (message.op == Op::move) {
    list_lengths(transfers);
    payload.lengths = lengths_;
  }
  const MessageId id = dispatcher_.post(message, payload, sink_);
  for (Transfer* transfer : transfers) transfer->message = id;
  of_message_.resize(std::max<size_t>(of_message_.size(), id.slot + 1u));
  of_message_[id.slot].assign(transfers.begin(), transfers.end());
}

// One message for each source.
void Transfers::post_started() {
  if (from_store_alone()) {
    if (!started_.empty()) post(started_);
    return;
  }
  std::ranges::stable_sort(started_, {}, &Transfer::source);
  for (size_t begin = 0, end = 0; begin != started_.size(); begin = end) {
    while (end != started_.size() && started_[end]->source == started_[begin]->source) ++end;
    post(std::span(started_).subspan(begin, end - begin));
  }
}

void Transfers::post_again(Transfer& transfer) {
  Transfer* const alone = &transfer;
  post({&alone, 1});
}

void Transfers::demand(Transfer& transfer) {
  transfer.priority = Priority::demand;
  if (transfer.state == Transfer::State::moving) dispatcher_.raise(transfer.message, Priority::demand);
}

Transfers::Started Transfers::start(FetchList& list) {
  if (list.any_order) return start_in_order(list);
  const Site& site = sites_[list.purpose.site];
  asked_.clear();
  ask(list);
  const uint32_t demanded = kDemandedBytes / sites_.editions[list.edition].slot_bytes;
  // Where the free blocks do not hold everything in such pieces, the pieces are larger, so that all of it is
  // asked for at once: asked for behind the first run, the rest would leave the disk idle while that one is
  // computed.
  const size_t left = list.neurons.size() - list.next, blocks = std::max(1U, staging_.free_blocks());
  const size_t share = left > blocks * demanded ? divide_up(left, blocks) + together(site) : demanded;
  asked_.front().most = std::min(asked_.front().most, std::max<size_t>(together(site), share));
  return start_stretches();
}

// The memory below fetches in an order of its own, and what it has fetched keeps its blocks until it has come
// here: whoever waited for the next one of this order might wait for ever. False: nothing is ready.
bool Transfers::put_ready_in_front(FetchList& list) {
  size_t ready = list.next;
  while (ready != list.neurons.size() && !list.ready(ready)) ++ready;
  if (ready == list.neurons.size()) return false;
  const auto at = [&](size_t i) { return list.neurons.begin() + static_cast<std::ptrdiff_t>(i); };
  std::rotate(at(list.next), at(ready), at(ready + 1));
  return true;
}

Transfers::Started Transfers::start_in_order(FetchList& list) {
  started_.clear();
  if (!can_post() || !put_ready_in_front(list)) return started_;
  const ToFetch& first = list.neurons[list.next];
  if (!first.keep && staging_.free_blocks() < 1 + spare(list.priority)) return started_;
  Transfer& transfer = open(list, first.source);
  if (!first.keep) transfer.block = staging_.lease();
  const size_t end =
      std::min(list.neurons.size(), list.next + std::min(most_in_block(list.edition), most_units()));
  for (; list.next != end; ++list.next) {
    const ToFetch& of = list.neurons[list.next];
    if (of.keep != first.keep || of.source != first.source || !list.ready(list.next)) break;
    transfer.neurons.push_back(of.neuron);
  }
  post_started();
  return started_;
}

Transfers::Started Transfers::start(Wish& wish) {
  asked_.clear();
  for (FetchList& part : wish.parts) {
    if (!part.done()) ask(part);
  }
  const size_t blocks = staging_.blocks();
  size_t most = std::min<size_t>(blocks > demand_blocks_ ? blocks - demand_blocks_ : 1,
                                 most_units() / together(sites_[asked_.front().list->purpose.site]));
  // What lies side by side in the file does not in another memory, whose slots have the size of one edition.
  if (!from_store_alone()) most = 1;
  if (asked_.size() > most) asked_.resize(std::max<size_t>(1, most));
  FetchList& first = *asked_.front().list;
  if (asked_.size() == 1 && first.any_order) return start_in_order(first);
  return start_stretches();
}

// The next transfers of those in `asked_`. What streams by takes a block of each edition; what is kept stands
// among it in the file, and is fetched by the same read.
Transfers::Started Transfers::start_stretches() {
  started_.clear();
  if (!can_post()) return started_;
  const FetchList& first = *asked_.front().list;
  take_stretches(asked_, sites_[first.purpose.site].run, most_units());
  const auto blocks = std::ranges::count_if(asked_, &NextStretches::takes_streams);
  if (blocks != 0 && staging_.free_blocks() < static_cast<uint32_t>(blocks) + spare(first.priority))
    return started_;
  for (const NextStretches& asked : asked_) {
    open_taken(asked);
    asked.list->next = asked.end;
  }
  post_started();
  return started_;
}

// Transfers for what the next runs bring of one edition: what is kept apart from what streams by, and each
// source by itself. All that streams by fills one block, one source behind the other.
void Transfers::open_taken(const NextStretches& asked) {
  const size_t before = started_.size();
  const auto transfer_of = [&](const ToFetch& taken) -> Transfer& {
    for (size_t i = before; i < started_.size(); ++i) {
      Transfer& transfer = *started_[i];
      if (transfer.into_arena() == taken.keep && transfer.source == taken.source) return transfer;
    }
    Transfer& transfer = open(*asked.list, taken.source);
    if (taken.keep) return transfer;
    const auto other = std::find_if(started_.begin() + static_cast<std::ptrdiff_t>(before), started_.end(),
                                    [](const Transfer* started) { return !started->into_arena(); });
    if (other == started_.end()) {
      transfer.block = staging_.lease();
    } else {
      transfer.block = (*other)->block;
      staging_.share(transfer.block);
    }
    return transfer;
  };
  Transfer* last = nullptr;
  const ToFetch* like = nullptr;
  for (const ToFetch& taken : asked.taken()) {
    if (last == nullptr || like->keep != taken.keep || like->source != taken.source)
      last = &transfer_of(taken);
    like = &taken;
    last->neurons.push_back(taken.neuron);
  }
  uint32_t first = 0;
  for (size_t i = before; i < started_.size(); ++i) {
    if (started_[i]->into_arena()) continue;
    started_[i]->first = first;
    first += static_cast<uint32_t>(started_[i]->neurons.size());
  }
}

void Transfers::ended(MessageId message, std::vector<Transfer*>& transfers) {
  transfers.clear();
  transfers.swap(of_message_[message.slot]);
  for (const Transfer* transfer : transfers) TIERD_CHECK(transfer->message == message);
}

uint64_t Transfers::payload_bytes(std::span<Transfer* const> transfers, uint64_t neurons) const {
  uint64_t bytes = 0;
  for (const Transfer* transfer : transfers) {
    for (const uint32_t neuron : transfer->neurons) {
      if (neurons-- == 0) return bytes;
      bytes += crossing_bytes(*transfer, neuron);
    }
  }
  return bytes;
}

void Transfers::abandon(Transfer& transfer) {
  if (std::exchange(transfer.unwanted, true)) return;
  const std::vector<Transfer*>& together = of_message_[transfer.message.slot];
  if (std::ranges::all_of(together, &Transfer::unwanted)) dispatcher_.cancel(transfer.message);
}

Error Transfers::error(const Transfer& transfer, const Done& done) const {
  const From& from = options_.from[transfer.source];
  if (done.status == DoneStatus::lost) return dispatcher_.lost(from.agent);
  if (from.memory != kStore) {
    return {Code::internal, fmt::format("agent {}", from.agent),
            fmt::format("moving neurons from memory {} to memory {} failed after {} attempts: {}",
                        from.memory, options_.id, transfer.attempts, status_name(done.status))};
  }
  const std::string origin = options_.describe_extent ? options_.describe_extent(done.bad_extent)
                                                      : fmt::format("extent {}", done.bad_extent);
  switch (done.status) {
    case DoneStatus::corrupt:
      // The agent says so of what it could not expand.
      if (done.error == EBADMSG)
        return {Code::corrupt, origin,
                "cannot be expanded: what is stored is malformed; convert the model again"};
      return {Code::corrupt, origin,
              "the checksum does not match; the store is damaged: remove it and convert again"};
    case DoneStatus::cancelled:
      return {Code::cancelled, origin, "the read was cancelled"};
    default:
      // The agent says these two of neurons that it could not expand.
      if (done.status == DoneStatus::no_space && done.error == ENOMEM)
        return {Code::no_space, origin, "there was no memory to expand it"};
      if (done.status == DoneStatus::internal && done.error == EBADMSG)
        return {Code::plugin_fault, origin, "its codec failed to expand it (the warning before says how)"};
      // The agent's word for a file that ends inside the extent.
      if (done.error == ENODATA) {
        return {Code::io_error, origin, "the file ends here; the store was cut short while it was in use"};
      }
      return {Code::io_error, origin,
              fmt::format("read failed after {} attempts: {}", transfer.attempts,
                          done.error != 0 ? std::string(std::strerror(done.error))
                                          : fmt::format("status {}", static_cast<int>(done.status)))};
  }
}

}  // namespace tierd
