#include "tiers/null/null_agent.h"

#include <algorithm>

namespace tierd {

// A credit is in use from here until its completion has been polled, so that completions never lack room.
Submit NullAgent::submit(const Message& message, const Payload&) {
  if (accepted_.size() + done_.size() == credits_) return Submit::busy;
  accepted_.push_back(message);
  return Submit::ok;
}

// Completes the accepted messages. A real agent starts the work that its device has room for, collects the
// work that has ended, and returns at once: the thread may be the kernel's. Here all work has ended already.
Drive NullAgent::drive() {
  if (accepted_.empty()) return Drive::idle;
  for (const Message& message : accepted_) {
    done_.push_back({.id = message.id,
                     .lane = message.lane,
                     .start_ns = message.queued_ns,
                     .done_ns = message.queued_ns});
  }
  accepted_.clear();
  return Drive::busy;
}

// Hands over as many completions as there is room for, each exactly once; the others wait for the next call.
size_t NullAgent::poll(std::span<Done> done) {
  const size_t n = std::min(done.size(), done_.size());
  std::copy_n(done_.begin(), n, done.begin());
  done_.erase(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(n));
  return n;
}

}  // namespace tierd
