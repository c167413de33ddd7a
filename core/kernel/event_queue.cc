#include "core/kernel/event_queue.h"

#include <algorithm>
#include <tuple>

#include "core/base/check.h"

namespace tierd {

void EventQueue::submit(const Message& message, uint64_t service_ns) {
  waiting_.push_back({message, service_ns, std::max(now_ns_, message.ready_ns), arrivals_++});
}

std::vector<EventQueue::Waiting>::iterator EventQueue::find(MessageId id) {
  return std::find_if(waiting_.begin(), waiting_.end(),
                      [id](const Waiting& w) { return w.message.id == id; });
}

bool EventQueue::cancel(MessageId id) {
  // What is ready at this very moment has not started: `next` lets an engine choose only when everything that
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

// Starts requests on free engines as long as the start lies at or before `until_ns`.
void EventQueue::start_what_can(uint64_t until_ns) {
  for (bool started = true; started;) {
    started = false;
    // For each free engine the moment at which it can first serve something, then the best request ready at
    // that moment.
    std::map<EngineKey, uint64_t> moment;
    for (const Waiting& w : waiting_) {
      const EngineKey engine = key(w.message);
      if (running_.contains(engine)) continue;
      const uint64_t at = std::max(w.ready_ns, free_ns_[engine]);
      const auto [known, fresh] = moment.emplace(engine, at);
      if (!fresh) known->second = std::min(known->second, at);
    }
    for (const auto& [engine, at] : moment) {
      if (at > until_ns) continue;
      auto best = waiting_.end();
      for (auto w = waiting_.begin(); w != waiting_.end(); ++w) {
        if (key(w->message) != engine || w->ready_ns > at) continue;
        if (best == waiting_.end() ||
            std::tuple(w->message.priority, w->arrival) < std::tuple(best->message.priority, best->arrival)) {
          best = w;
        }
      }
      TIERD_CHECK(best != waiting_.end());
      running_[engine] = {best->message, at, at + best->service_ns, false};
      waiting_.erase(best);
      started = true;
    }
  }
}

std::map<EventQueue::EngineKey, EventQueue::Completion>::iterator EventQueue::first_running() {
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
  free_ns_[ended->first] = result.done_ns;
  running_.erase(ended);
  return result;
}

std::optional<EventQueue::Completion> EventQueue::next() {
  for (;;) {
    // An engine chooses when all that ends at this moment has been told: who hears of it may have something
    // better for the engine.
    if (std::optional<Completion> present = take_present()) return present;
    start_what_can(now_ns_);
    if (running_.empty()) {
      if (waiting_.empty()) return std::nullopt;
      // Nothing is ready yet: go to the first moment at which something is.
      uint64_t first = UINT64_MAX;
      for (const Waiting& w : waiting_)
        first = std::min(first, std::max(w.ready_ns, free_ns_[key(w.message)]));
      now_ns_ = first;
      continue;
    }
    // A free engine may get something ready before the first completion, which may end even earlier.
    uint64_t end_ns = first_running()->second.done_ns;
    for (size_t before = 0; before != running_.size() && end_ns > now_ns_;) {
      before = running_.size();
      start_what_can(end_ns - 1);
      end_ns = first_running()->second.done_ns;
    }
    now_ns_ = end_ns;
  }
}

}  // namespace tierd
