// The messages of the transfers into one memory: what agents are asked to read or to move, how much of it
// crossed each link, and why a message has failed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/agent/message.h"
#include "core/base/result.h"
#include "core/kernel/supply/context.h"
#include "core/kernel/supply/transfer.h"

namespace tierd {

class TransferMessages {
 public:
  // `describe_extent` names an extent in an error: file, offset, site. `sink` receives the end of each
  // message. Everything referred to outlives this.
  TransferMessages(const SupplyContext& context, std::function<std::string(uint32_t extent)> describe_extent,
                   CompletionSink& sink);

  // Whether the dispatcher has room for a message from each source.
  bool can_post() const { return context_.dispatcher.can_post(static_cast<uint32_t>(from_.size())); }
  bool from_store_alone() const { return from_.size() == 1 && from_[0].memory == kStore; }
  // Returns the agent that moves the neurons of a transfer here from another memory; GatherRequest::kNoAgent:
  // they are read from the store.
  uint16_t mover(const Transfer& transfer) const {
    const From& from = from_[transfer.source];
    return from.memory == kStore ? GatherRequest::kNoAgent : from.agent;
  }

  // Whether an agent moves neurons here.
  bool moves(uint16_t agent) const {
    return std::ranges::any_of(
        from_, [agent](const From& from) { return from.memory != kStore && from.agent == agent; });
  }

  // Messages that are posted from now on belong to the time of this step; 0: to none.
  void set_step(uint32_t step) { step_ = step; }
  // Posts one message for transfers whose slots or blocks are leased, and which have one source. Neurons that
  // are contiguous in the file are one read of the device, whichever edition they belong to.
  void post(std::span<Transfer* const> transfers);
  // A pass waits for the transfer now.
  void raise(const Transfer& transfer);
  // Cancels the message of a transfer if all its transfers are abandoned.
  void cancel(const Transfer& transfer);

  // Returns in `transfers` those of a message that has ended, which is forgotten, and counts it on its link.
  void ended(const Message& message, const Done& done, std::vector<Transfer*>& transfers);
  // Says why a message with this transfer alone has failed.
  Error error(const Transfer& transfer, const Done& done) const;

  // [links into the memory]
  const std::vector<LinkCounters>& links() const { return links_; }
  void count_on(size_t link, const LinkCounters& counters) { add_figures(links_[link], counters); }

 private:
  // The memory that neurons come from, and the agent that carries them.
  struct From {
    MemoryId memory = kStore;
    uint16_t agent = 0;
    uint8_t lane = 0;
  };

  void list(const Transfer& transfer);
  void list_lengths(std::span<Transfer* const> transfers);
  void count(const Message& message, const Done& done, std::span<Transfer* const> transfers);
  EditionId edition_at_source(const Transfer& transfer) const;
  uint64_t payload_bytes(std::span<Transfer* const> transfers, uint64_t neurons) const;

  const SupplyContext& context_;
  const std::function<std::string(uint32_t extent)> describe_extent_;
  CompletionSink& sink_;
  std::vector<From> from_;            // [links into the memory]
  std::vector<LinkCounters> links_;   // [links into the memory]
  std::vector<uint64_t> busy_until_;  // [links into the memory] when the latest message ended, ns
  uint32_t step_ = 0;
  std::vector<std::vector<Transfer*>> of_message_;  // by message slot
  std::vector<Unit> units_;                         // of the message that is being posted
  std::vector<uint32_t> neurons_, lengths_;         // likewise
};

}  // namespace tierd
