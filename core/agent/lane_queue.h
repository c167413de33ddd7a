// The requests that wait in a lane: the next one is the first of the most urgent. Requests that have begun
// are not in the queue, and continue unchanged.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "core/agent/message.h"

namespace tierd {

// `Request` has a `message`.
template <class Request>
class LaneQueue {
 public:
  bool empty() const { return waiting_.empty(); }
  void push(Request request) { waiting_.push_back(std::move(request)); }
  bool holds(const MessageId& id) const { return std::ranges::find(waiting_, id, id_of) != waiting_.end(); }
  // Takes the next request if it can begin. A run whose move is not over (`open` returns true for its id)
  // blocks the requests after it, so that results are added in the order of the runs; only the move itself
  // overtakes it.
  template <class Open>
  std::optional<Request> take_next(Open open) {
    if (empty()) return std::nullopt;
    auto next = std::ranges::min_element(waiting_, {}, [](const Request& r) { return r.message.priority; });
    if (next->message.op == Op::run && open(next->message.about)) {
      next = std::ranges::find(waiting_, next->message.about, id_of);
      if (next == waiting_.end()) return std::nullopt;
    }
    Request request = std::move(*next);
    waiting_.erase(next);
    return request;
  }
  // Applies a `raise` or `cancel`. Returns the withdrawn message.
  std::optional<Message> advise(const Message& advice) {
    const auto meant = std::ranges::find(waiting_, advice.about, id_of);
    if (meant == waiting_.end()) return std::nullopt;
    if (advice.op == Op::raise) {
      meant->message.priority = std::min(meant->message.priority, advice.priority);
      return std::nullopt;
    }
    const Message withdrawn = meant->message;
    waiting_.erase(meant);
    return withdrawn;
  }

 private:
  static MessageId id_of(const Request& request) { return request.message.id; }

  std::deque<Request> waiting_;  // in the order of arrival
};

}  // namespace tierd
