// The failed moves of an agent: a run posted behind one may arrive long after that move's completion.
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
  // Returns whether the message is a run whose neurons are missing because its move failed.
  bool forbid(const Message& message) const {
    const MessageId& move = message.about;
    return message.op == Op::run && move != MessageId{} && move.slot < generations_.size() &&
           generations_[move.slot] == move.generation;
  }

 private:
  std::vector<uint32_t> generations_;  // [slots of messages] generation of the last failed move
};

}  // namespace tierd
