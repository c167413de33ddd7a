// The neurons of a gathering that are in the memory, or on their way there: which transfer a neuron is
// fetched by, where it is, and whether it was handed on, to messages that compute from the memory or to
// another memory. Blocks are given back as soon as all their wanted neurons were used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/active_set.h"
#include "core/kernel/supply/context.h"
#include "core/kernel/supply/gather_request.h"
#include "core/kernel/supply/offer.h"
#include "core/kernel/supply/transfer.h"
#include "core/kernel/supply/transfers.h"

namespace tierd {

class Arrivals : public TransferWaiter {
 public:
  // Everything referred to outlives this.
  Arrivals(const SupplyContext& context, Transfers& transfers);
  Arrivals(const Arrivals&) = delete;

  // ---- For the gathering.

  // Begins: pins the wanted neurons that are valid, and appends the others to `absent`. The request stays as
  // it is until `end`. `passes_on`: another memory fetches from here.
  void begin(const GatherRequest& request, bool passes_on, std::vector<uint32_t>& absent);
  // Waits for a transfer that is under way already, or landed in a block. Returns its number.
  uint32_t join(Transfer& transfer);
  // An absent neuron is fetched by the transfer of this number.
  void expect(uint32_t neuron, uint32_t number);
  // All that was in the memory at the beginning is known: their places are.
  void note_places();
  // The wanted neurons that were valid at the beginning.
  std::span<const uint32_t> resident() const { return resident_; }
  // Unpins all neurons, and waits for none any more. Appends to `surplus` transfers without a waiter.
  void end(std::vector<Transfer*>& surplus);
  // Not ok once a transfer has failed for good.
  const Status& status() const { return status_; }

  // ---- For a pass.

  // Appends neurons that can be computed and were not handed out before, with their places, to `units`, which
  // is empty; no more than a message can list. They keep their places until `computed`. Where results are
  // added, neurons follow in the order of their numbers, all of a stretch together, since this is the order
  // in which they are summed. Returns the move that some of them wait for, which the message that computes
  // them must name (Message::about).
  MessageId hand_out(std::vector<Unit>& units);
  // The same, where results are placed, for neurons on their way, which `hand_out` leaves to this function:
  // all that one message moves here.
  MessageId hand_out_moving(std::vector<Unit>& units);
  // Whether all neurons that were fetched so far were handed out.
  bool handed_out() const;
  // `message` computes the neurons that were handed out since the last call.
  void computed_by(MessageId message);
  // `message` has ended.
  void computed(MessageId message);

  // ---- For another memory, see Offer.

  uint32_t place(uint32_t neuron) const { return places_[neuron]; }
  void took(std::span<const uint32_t> neurons);
  void release_all_but(std::span<const uint32_t> neurons);

  uint32_t started(Transfer& transfer) override;
  void landed(const Transfer& transfer, uint32_t number) override;
  Retry retry(uint32_t number) const override;
  void failed(uint32_t number, const Error& error) override;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // A transfer that the gathering waits for, or waited for.
  struct Awaited {
    // followed: neurons were handed out while they are on their way. here: in its block. used: in its block,
    // and all neurons were handed out.
    enum class Stage : uint8_t { coming, followed, here, used };
    Transfer* transfer;  // NULL: the gathering does not wait for it any more
    Stage stage = Stage::coming;
    uint32_t left = 0;           // wanted neurons that were not handed on
    MessageId computed_by = {};  // the last message that computes neurons of it, once that is posted
  };
  using Stage = Awaited::Stage;

  MessageId hand_out_stretches(std::vector<Unit>& units);
  uint32_t end_of_stretch(MessageId& move) const;
  bool can_follow(const Transfer& transfer) const;
  void hand_out(Awaited& awaited, Stage stage);
  void append(uint32_t number, std::vector<Unit>& units) const;
  void note_places(uint32_t number);
  void arrive(const Transfer& transfer, uint32_t number);
  bool leave(Awaited& awaited);
  void skip_ended();
  const Site& site() const { return context_.sites[request_->purpose.site]; }
  bool added() const { return site().added; }
  const ActiveSet& wanted() const { return request_->set(); }

  const SupplyContext& context_;
  Transfers& transfers_;
  const GatherRequest* request_ = nullptr;
  bool notes_places_ = false;
  bool follows_ = false;  // the agent that computes from the memory moves neurons there

  std::vector<uint32_t> resident_;  // in the arena, and not handed out yet
  std::vector<uint32_t> pinned_;    // in the arena
  std::vector<Awaited> awaited_;    // by number
  uint32_t first_ = 0;              // transfers of lesser numbers are not awaited any more
  // By neuron, with room for the largest site: a gathering writes, and clears, only entries of its own.
  std::vector<uint32_t> source_;   // number of the transfer that it is handed on from, or kNone
  std::vector<uint32_t> places_;   // of a wanted neuron; kNowhere: it cannot be handed on yet
  std::vector<uint32_t> sourced_;  // neurons with a source
  uint32_t next_ = 0;              // where results are added: the first of `wanted` that was not handed out
  Status status_;
};

}  // namespace tierd
