// The requests that wait in a lane: the next one is the first of the most urgent. What has been begun is not
// here any more, and goes on as it is.
#pragma once

#include <algorithm>
#include <cstddef>
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
  // The next one, if it can be begun. A run whose move is not over, as `open` tells of an id, keeps those
  // after it waiting, so that results are added in the order of the runs; only the move itself overtakes it.
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
  // Follows a `raise` or `cancel`. Returns the message that it withdraws.
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
