// Which moves of an agent have failed: a run that was posted behind one of them may arrive when the agent has
// long handed over that move's completion.
#pragma once

#include <cstdint>
#include <vector>

#include "core/agent/message.h"

namespace tierd {

class FailedMoves {
 public:
  void note(const Message& message, DoneStatus status) {
    if (message.op != Op::move || status == DoneStatus::ok) return;
    if (message.id.slot >= generations_.size()) generations_.resize(message.id.slot + 1u);
    generations_[message.id.slot] = message.id.generation;
  }
  // Whether it cannot be computed since what it computes from is not there.
  bool forbid(const Message& message) const {
    const MessageId& move = message.about;
    return message.op == Op::run && move != MessageId{} && move.slot < generations_.size() &&
           generations_[move.slot] == move.generation;
  }

 private:
  std::vector<uint32_t> generations_;  // [slots of messages] of the last move there that has failed
};

}  // namespace tierd
