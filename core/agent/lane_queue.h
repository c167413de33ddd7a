// The requests that wait in a lane: the next one is the first of the most urgent. What has been begun is not
// here any more, and goes on as it is.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "core/message/message.h"

namespace tierd {

// `Request` has a `message`.
template <class Request>
class LaneQueue {
 public:
  bool empty() const { return waiting_.empty(); }
  void push(Request request) { waiting_.push_back(std::move(request)); }
  // There must be one.
  Request take_next() {
    const auto first =
        std::ranges::min_element(waiting_, {}, [](const Request& r) { return r.message.priority; });
    Request request = *first;
    waiting_.erase(first);
    return request;
  }
  // Follows a `raise` or `cancel`. Returns the message that it withdraws.
  std::optional<Message> advise(const Message& advice) {
    const auto meant =
        std::ranges::find(waiting_, advice.about, [](const Request& r) { return r.message.id; });
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
  std::deque<Request> waiting_;  // in the order of arrival
};

}  // namespace tierd
