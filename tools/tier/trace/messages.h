// Matches the post of a message with its completion.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/watch/trace/event.h"
#include "core/watch/trace/header.h"

namespace tierd {

struct Served {
  Message posted;
  size_t units = 0;
  uint64_t posted_ns = 0;
  uint64_t delivered_ns = 0;
  Done done;
  bool withdrawn = false;
};

class Messages {
 public:
  // Returns the message that this event completes, if any.
  std::optional<Served> take(const Event& event);

 private:
  std::map<uint32_t, Served> open_;  // by slot
};

// Returns the agent and the lane that serves the message: "flash read".
std::string lane_name(const TraceHeader& header, const Message& message);

}  // namespace tierd
