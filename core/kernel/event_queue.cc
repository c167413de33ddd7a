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
  // What could start before now has started, whether or not anybody asked.
  start_what_can(now_ns_);
  const auto found = find(id);
  if (found == waiting_.end()) return false;
  cancelled_.push_back({found->message, now_ns_, now_ns_, true});
  waiting_.erase(found);
  return true;
}

bool EventQueue::raise(MessageId id, Priority priority) {
  start_what_can(now_ns_);
  const auto found = find(id);
  if (found == waiting_.end()) return false;
  found->message.priority = std::min(found->message.priority, priority);
  return true;
}

// Starts requests on free engines as long as the start lies at or before `until_ns` and before the engine's
// own next completion is taken out by `next`.
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

std::optional<EventQueue::Completion> EventQueue::next() {
  if (!cancelled_.empty()) {
    const auto first =
        std::min_element(cancelled_.begin(), cancelled_.end(), [](const Completion& a, const Completion& b) {
          return std::tuple(a.message.priority, a.message.id.slot) <
                 std::tuple(b.message.priority, b.message.id.slot);
        });
    const Completion result = *first;
    cancelled_.erase(first);
    return result;
  }
  start_what_can(now_ns_);
  if (running_.empty()) {
    if (waiting_.empty()) return std::nullopt;
    // Nothing is ready yet: go to the first moment at which something is.
    uint64_t first = UINT64_MAX;
    for (const Waiting& w : waiting_) first = std::min(first, std::max(w.ready_ns, free_ns_[key(w.message)]));
    now_ns_ = std::max(now_ns_, first);
    start_what_can(now_ns_);
  }
  for (;;) {
    const auto order = [](const auto& a, const auto& b) {
      const auto rank = [](const Completion& c) {
        return std::tuple(c.done_ns, c.message.priority, c.message.id.slot);
      };
      return rank(a.second) < rank(b.second);
    };
    const auto first = std::min_element(running_.begin(), running_.end(), order);
    // Another engine may get something ready before this completion, which may be done even earlier. What
    // becomes ready at the very moment of the completion waits: who hears of the completion may submit
    // something better.
    const size_t before = running_.size();
    if (first->second.done_ns > 0) start_what_can(first->second.done_ns - 1);
    if (running_.size() != before) continue;
    const Completion result = first->second;
    free_ns_[first->first] = result.done_ns;
    running_.erase(first);
    now_ns_ = std::max(now_ns_, result.done_ns);
    return result;
  }
}

}  // namespace tierd
