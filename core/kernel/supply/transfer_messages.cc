#include "core/kernel/supply/transfer_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/align.h"
#include "core/base/check.h"

namespace tierd {

TransferMessages::TransferMessages(const SupplyContext& context,
                                   std::function<std::string(uint32_t extent)> describe_extent,
                                   CompletionSink& sink)
    : context_(context), describe_extent_(std::move(describe_extent)), sink_(sink) {
  for (const Link& link : context.topology.links) {
    if (link.to == context.id) from_.push_back({link.from, link.agent, link.lane});
  }
  links_.resize(from_.size());
  busy_until_.resize(from_.size());
}

void TransferMessages::post(std::span<Transfer* const> transfers) {
  units_.clear();
  for (Transfer* transfer : transfers) {
    list(*transfer);
    ++transfer->attempts;
    transfer->state = Transfer::State::moving;
  }
  const Transfer& first = *transfers.front();
  const From& from = from_[first.source];
  const EditionId comes_as = edition_at_source(first);
  Message message;
  message.op = from.memory == kStore ? Op::read : Op::move;
  message.priority = first.priority;
  message.agent = from.agent;
  message.lane = from.lane;
  message.from = from.memory;
  message.memory = context_.id;
  if (message.op == Op::move) message.unit_bytes = context_.sites.editions[comes_as].slot_bytes;
  const auto recoded = [&](const Transfer* of) { return edition_at_source(*of) != of->edition; };
  if (std::ranges::any_of(transfers, recoded)) message.flags = kRecode;
  message.step = step_;
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
  const MessageId id = context_.dispatcher.post(message, payload, sink_);
  for (Transfer* transfer : transfers) transfer->message = id;
  of_message_.resize(std::max<size_t>(of_message_.size(), id.slot + 1u));
  of_message_[id.slot].assign(transfers.begin(), transfers.end());
}

void TransferMessages::raise(const Transfer& transfer) {
  if (transfer.state == Transfer::State::moving)
    context_.dispatcher.raise(transfer.message, Priority::demand);
}

void TransferMessages::cancel(const Transfer& transfer) {
  const std::vector<Transfer*>& together = of_message_[transfer.message.slot];
  const auto abandoned = [](const Transfer* of) { return of->state == Transfer::State::abandoned; };
  if (std::ranges::all_of(together, abandoned)) context_.dispatcher.cancel(transfer.message);
}

void TransferMessages::ended(const Message& message, const Done& done, std::vector<Transfer*>& transfers) {
  transfers.clear();
  transfers.swap(of_message_[message.id.slot]);
  for (const Transfer* transfer : transfers) TIERD_CHECK(transfer->message == message.id);
  count(message, done, transfers);
}

void TransferMessages::count(const Message& message, const Done& done, std::span<Transfer* const> transfers) {
  const MemoryId from = message.op == Op::read ? kStore : message.from;
  const auto index = static_cast<size_t>(std::ranges::find(from_, from, &From::memory) - from_.begin());
  LinkCounters& link = links_[index];
  ++link.messages;
  link.neurons += done.n_done;
  link.bytes += done.bytes;
  link.payload_bytes += std::min(done.bytes, payload_bytes(transfers, done.n_done));
  // Messages end in the order of their ends.
  uint64_t& until = busy_until_[index];
  link.busy_ns += done.done_ns - std::min(done.done_ns, std::max(until, done.start_ns));
  until = std::max(until, done.done_ns);
}

// Returns the edition in which a transfer's neurons are where they are fetched from.
EditionId TransferMessages::edition_at_source(const Transfer& transfer) const {
  if (transfer.below != nullptr) return transfer.below->edition();
  const EditionId made_of = context_.sites.editions[transfer.edition].made_of;
  return made_of != kNoEdition ? made_of : transfer.edition;
}

// Appends the neurons of a transfer to the message's list.
void TransferMessages::list(const Transfer& transfer) {
  const Edition& edition = context_.sites.editions[transfer.edition];
  for (size_t i = 0; i < transfer.neurons.size(); ++i) {
    const uint32_t neuron = transfer.neurons[i];
    const Offer* const below = transfer.below;
    const uint32_t from = below != nullptr ? below->place(neuron) : edition.extent_of(neuron);
    units_.push_back({from, transfer.places[i]});
  }
}

// Lists the bytes to move of each neuron. The slots of an edition are as large as its largest neuron: only a
// neuron's own bytes are moved, up to a multiple of kPlaceUnit.
void TransferMessages::list_lengths(std::span<Transfer* const> transfers) {
  lengths_.clear();
  for (const Transfer* transfer : transfers) {
    const std::vector<uint32_t>& bytes = context_.sites.editions[edition_at_source(*transfer)].bytes;
    for (const uint32_t neuron : transfer->neurons)
      lengths_.push_back(static_cast<uint32_t>(align_up(bytes[neuron], kPlaceUnit)));
  }
}

// Returns the bytes of weights, without padding, of the first `neurons` of these transfers, as they cross the
// link: bitmaps are expanded behind the link, and neurons of fewer bits are made before it.
uint64_t TransferMessages::payload_bytes(std::span<Transfer* const> transfers, uint64_t neurons) const {
  uint64_t bytes = 0;
  for (const Transfer* transfer : transfers) {
    const std::vector<uint32_t>& there = context_.sites.editions[edition_at_source(*transfer)].bytes;
    const std::vector<uint32_t>& here = context_.sites.editions[transfer->edition].bytes;
    for (const uint32_t neuron : transfer->neurons) {
      if (neurons-- == 0) return bytes;
      bytes += std::min(there[neuron], here[neuron]);
    }
  }
  return bytes;
}

Error TransferMessages::error(const Transfer& transfer, const Done& done) const {
  const From& from = from_[transfer.source];
  if (done.status == DoneStatus::lost) return context_.dispatcher.lost(from.agent);
  if (from.memory != kStore) {
    return {Code::internal, fmt::format("agent {}", from.agent),
            fmt::format("moving neurons from memory {} to memory {} failed after {} attempts: {}",
                        from.memory, context_.id, transfer.attempts, status_name(done.status))};
  }
  const std::string origin =
      describe_extent_ ? describe_extent_(done.bad_extent) : fmt::format("extent {}", done.bad_extent);
  switch (done.status) {
    case DoneStatus::corrupt:
      // The agent's code for stored bytes that it could not expand.
      if (done.error == EBADMSG)
        return {Code::corrupt, origin,
                "cannot be expanded, because the stored bytes are malformed; convert the model again"};
      return {Code::corrupt, origin,
              "the checksum does not match; the store is damaged: remove it and convert again"};
    case DoneStatus::cancelled:
      return {Code::cancelled, origin, "the read was cancelled"};
    default:
      // The agent's codes for neurons that it could not expand.
      if (done.status == DoneStatus::no_space && done.error == ENOMEM)
        return {Code::no_space, origin, "cannot allocate memory to expand it"};
      if (done.status == DoneStatus::internal && done.error == EBADMSG)
        return {Code::plugin_fault, origin, "its codec failed to expand it (see the warning before)"};
      // The agent's code for a file that ends inside the extent.
      if (done.error == ENODATA) {
        return {Code::io_error, origin, "the file ends here; the store was truncated while it was in use"};
      }
      return {Code::io_error, origin,
              fmt::format("read failed after {} attempts: {}", transfer.attempts,
                          done.error != 0 ? std::string(std::strerror(done.error))
                                          : fmt::format("status {}", static_cast<int>(done.status)))};
  }
}

}  // namespace tierd
