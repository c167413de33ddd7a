// Puts a message's post and its completion together.
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
  // The message that this event completes, if it completes one.
  std::optional<Served> take(const Event& event);

 private:
  std::map<uint32_t, Served> open_;  // by slot
};

// "flash read": the agent and the part of it that serves the message.
std::string lane_name(const TraceHeader& header, const Message& message);

}  // namespace tierd
