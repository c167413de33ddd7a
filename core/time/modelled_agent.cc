#include "core/time/modelled_agent.h"

#include <algorithm>
#include <tuple>

#include "core/base/check.h"
#include "core/base/take_first.h"

namespace tierd {

ModelledAgent::ModelledAgent(Agent& agent, const Cost& cost, VirtualClock& clock, VirtualThread* thread,
                             VirtualThread* disk)
    : agent_(agent), cost_(cost), clock_(clock), thread_(thread), disk_(disk) {
  clock.add(*this);
}

ModelledAgent::Lane& ModelledAgent::lane(uint8_t number) {
  if (number >= lanes_.size()) lanes_.resize(number + 1u);
  return lanes_[number];
}

Submit ModelledAgent::submit(const Message& message, const Payload& payload) {
  if (held_ == credits()) return Submit::busy;
  ++held_;
  LaneQueue<Request>& waiting = lane(message.lane).waiting;
  if (message.op == Op::cancel || message.op == Op::raise) {
    if (const auto withdrawn = waiting.advise(message)) {
      withdrawn_.note(*withdrawn, DoneStatus::cancelled);
      end(*withdrawn, DoneStatus::cancelled);
    }
    end(message, DoneStatus::ok);
  } else {
    waiting.push({message, payload});
  }
  return Submit::ok;
}

void ModelledAgent::end(const Message& message, DoneStatus status) {
  const uint64_t now = clock_.now_ns();
  done_.push_back(
      {.id = message.id, .status = status, .lane = message.lane, .start_ns = now, .done_ns = now});
}

// Returns whether a request waits or runs.
bool ModelledAgent::open(const MessageId& id) const {
  return std::ranges::any_of(lanes_, [&](const Lane& lane) {
    return lane.waiting.holds(id) || (lane.running && lane.running->request.message.id == id);
  });
}

void ModelledAgent::choose() {
  for (Lane& lane : lanes_) {
    if (lane.running) continue;
    const std::optional<Request> next =
        lane.waiting.take_next([this](const MessageId& id) { return open(id); });
    if (!next) continue;
    const uint64_t now = clock_.now_ns();
    const bool after_wait = thread_ != nullptr && thread_->idle_ns(now) >= cost_.wait_ns();
    const uint64_t ns = cost_.ns(next->message, next->payload, after_wait);
    VirtualThread* const serves = cost_.takes_turns_with_disk(next->message) ? disk_ : thread_;
    const uint64_t begins = serves != nullptr ? serves->begin(now, ns) : now;
    lane.running = {*next, begins, begins + ns};
    clock_.at(lane.running->done_ns);
  }
}

Drive ModelledAgent::drive() {
  over_.clear();
  for (Lane& lane : lanes_) {
    if (!lane.running || lane.running->done_ns > clock_.now_ns()) continue;
    over_.push_back(*lane.running);
    lane.running.reset();
  }
  if (over_.empty()) return Drive::idle;
  std::ranges::sort(over_, {}, [](const Running& r) {
    return std::tuple(r.request.message.priority, r.request.message.id.slot);
  });
  for (const Running& running : over_) {
    Done done = carry_out(running.request);
    done.lane = running.request.message.lane;
    done.start_ns = running.start_ns;
    done.done_ns = running.done_ns;
    done_.push_back(done);
  }
  return Drive::busy;
}

Done ModelledAgent::carry_out(const Request& request) {
  if (withdrawn_.forbid(request.message)) return {.id = request.message.id, .status = DoneStatus::cancelled};
  Done done;
  TIERD_CHECK(agent_.submit(request.message, request.payload) == Submit::ok);
  while (agent_.poll({&done, 1}) == 0) (void)agent_.drive();
  return done;
}

size_t ModelledAgent::poll(std::span<Done> done) {
  const size_t n = take_first(done_, done);
  held_ -= static_cast<uint32_t>(n);
  return n;
}

}  // namespace tierd
