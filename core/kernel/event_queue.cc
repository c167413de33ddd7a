#include "core/kernel/event_queue.h"

#include <algorithm>
#include <tuple>

#include "core/base/check.h"

namespace tierd {

void EventQueue::submit(const Message& message, uint64_t service_ns) {
  waiting_.push_back({message, service_ns, arrivals_++});
}

std::vector<EventQueue::Waiting>::iterator EventQueue::find(MessageId id) {
  return std::find_if(waiting_.begin(), waiting_.end(),
                      [id](const Waiting& w) { return w.message.id == id; });
}

bool EventQueue::cancel(MessageId id) {
  // What came at this very moment has not started: `next` lets a lane choose only when everything that
  // ends now has been told, so that the order of telling does not matter.
  const auto found = find(id);
  if (found == waiting_.end()) return false;
  cancelled_.push_back({found->message, now_ns_, now_ns_, true});
  waiting_.erase(found);
  return true;
}

bool EventQueue::raise(MessageId id, Priority priority) {
  const auto found = find(id);
  if (found == waiting_.end()) return false;
  found->message.priority = std::min(found->message.priority, priority);
  return true;
}

// Each free lane starts the best of what waits for it.
void EventQueue::start_what_can() {
  std::map<LaneKey, std::vector<Waiting>::iterator> best;
  for (auto w = waiting_.begin(); w != waiting_.end(); ++w) {
    const LaneKey lane = key(w->message);
    if (running_.contains(lane)) continue;
    const auto [known, fresh] = best.emplace(lane, w);
    const auto rank = [](const Waiting& of) { return std::tuple(of.message.priority, of.arrival); };
    if (!fresh && rank(*w) < rank(*known->second)) known->second = w;
  }
  std::vector<uint64_t> started;
  for (const auto& [lane, w] : best) {
    running_[lane] = {w->message, now_ns_, now_ns_ + w->service_ns, false};
    started.push_back(w->arrival);
  }
  std::erase_if(waiting_, [&](const Waiting& w) {
    return std::find(started.begin(), started.end(), w.arrival) != started.end();
  });
}

std::map<EventQueue::LaneKey, EventQueue::Completion>::iterator EventQueue::first_running() {
  return std::min_element(running_.begin(), running_.end(),
                          [](const auto& a, const auto& b) { return rank(a.second) < rank(b.second); });
}

// What is over at the present moment, the first by rank.
std::optional<EventQueue::Completion> EventQueue::take_present() {
  const auto cancelled =
      std::min_element(cancelled_.begin(), cancelled_.end(),
                       [](const Completion& a, const Completion& b) { return rank(a) < rank(b); });
  const auto ended = first_running();
  const bool ends_now = ended != running_.end() && ended->second.done_ns <= now_ns_;
  if (cancelled != cancelled_.end() && !(ends_now && rank(ended->second) < rank(*cancelled))) {
    const Completion result = *cancelled;
    cancelled_.erase(cancelled);
    return result;
  }
  if (!ends_now) return std::nullopt;
  const Completion result = ended->second;
  running_.erase(ended);
  return result;
}

std::optional<EventQueue::Completion> EventQueue::next() {
  for (;;) {
    // A lane chooses when all that ends at this moment has been told: who hears of it may have something
    // better for the lane.
    if (std::optional<Completion> present = take_present()) return present;
    start_what_can();
    if (running_.empty()) return std::nullopt;
    now_ns_ = first_running()->second.done_ns;
  }
}

}  // namespace tierd
