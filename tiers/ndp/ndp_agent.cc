#include "tiers/ndp/ndp_agent.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/take_first.h"
#include "tiers/link/timer.h"

namespace tierd {

Result<std::unique_ptr<NdpAgent>> NdpAgent::create(std::unique_ptr<DramAgent> dimm,
                                                   const EmulatedLink::Rate& link, const Clock& clock) {
  TIERD_ASSIGN(Descriptor timer, make_timer());
  return std::unique_ptr<NdpAgent>(new NdpAgent(std::move(dimm), link, clock, std::move(timer)));
}

// Moves inside the DIMM use no link and change slots that runs compute from: they wait in the runs' queue.
bool NdpAgent::crosses(const Message& message) const {
  return message.op == Op::move && message.from != message.memory;
}

Submit NdpAgent::submit(const Message& message, const Payload& payload) {
  // A credit is free again once its completion has been polled.
  if (held_ == credits()) return Submit::busy;
  ++held_;
  if (message.op == Op::cancel || message.op == Op::raise) {
    std::optional<Message> withdrawn = moves_.advise(message);
    if (!withdrawn) withdrawn = runs_.advise(message);
    if (withdrawn) end(*withdrawn, DoneStatus::cancelled);
    end(message, DoneStatus::ok);
    return Submit::ok;
  }
  (crosses(message) ? moves_ : runs_).push({message, payload, clock_.now_ns()});
  return Submit::ok;
}

void NdpAgent::end(const Message& message, DoneStatus status) {
  const uint64_t now = clock_.now_ns();
  failed_.note(message, status);
  done_.push_back(
      {.id = message.id, .status = status, .lane = message.lane, .start_ns = now, .done_ns = now});
}

// Returns whether the move waits or is under way.
bool NdpAgent::open(const MessageId& id) const {
  return moves_.holds(id) || (moving_ && moving_->request.message.id == id);
}

Drive NdpAgent::drive() {
  const bool moved = move();
  const bool computed = compute();
  return moved || computed ? Drive::busy : Drive::idle;
}

// Returns whether a move ended or was begun.
bool NdpAgent::move() {
  bool any = false;
  if (!moving_) {
    std::optional<Request> next = moves_.take_next([](const MessageId&) { return false; });
    if (!next) return false;
    any = true;
    EmulatedLink::Crossing crossing{.start_ns = next->since_ns};
    if (link_.takes_time()) {
      crossing = link_.carry(dimm_->crossing_bytes(next->message, next->payload), next->since_ns);
      ring_at(timer_, crossing.over_ns);
    }
    moving_ = Moving{std::move(*next), crossing};
  }
  if (moving_->crossing.over_ns > clock_.now_ns()) return any;
  if (link_.takes_time()) ring_at(timer_, 0);
  const Moving over = *std::exchange(moving_, std::nullopt);
  Done done = carry_out(over.request);
  done.start_ns = over.crossing.start_ns;
  done_.push_back(done);
  return true;
}

bool NdpAgent::compute() {
  const std::optional<Request> next = runs_.take_next([this](const MessageId& id) { return open(id); });
  if (!next) return false;
  if (failed_.forbid(next->message)) {
    end(next->message, DoneStatus::cancelled);
  } else {
    done_.push_back(carry_out(*next));
  }
  return true;
}

Done NdpAgent::carry_out(const Request& request) {
  Done done;
  TIERD_CHECK(dimm_->submit(request.message, request.payload) == Submit::ok);
  dimm_->drive();
  TIERD_CHECK(dimm_->poll({&done, 1}) == 1);
  done.done_ns = clock_.now_ns();
  failed_.note(request.message, done.status);
  return done;
}

size_t NdpAgent::poll(std::span<Done> done) {
  const size_t n = take_first(done_, done);
  held_ -= static_cast<uint32_t>(n);
  return n;
}

}  // namespace tierd
